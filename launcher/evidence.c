/* evidence.c - read processes from /proc. */
#include "launcher/evidence.h"
#include "common/fsutil.h"
#include "common/sv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES = 1024, DEPTH_MAX = 16 };

static bool read_file(const char *proc, pid_t pid, const char *name, struct buf *out)
{
    char path[PATH_MAX];
    struct err ignored;

    snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
    return fs_read(path, out, &ignored) == 0;
}

/* "77 (a name) S 1 77 77 ...": the name may contain any bytes, so parse after the last bracket. */
bool evidence_read(const char *proc, pid_t pid, struct evidence_process *ret)
{
    cleanup_buf struct buf text = BUF_INIT(FILE_BYTES);
    int parent, session;
    uint64_t user, kernel;
    char state;

    if (!read_file(proc, pid, "stat", &text))
        return false;
    const char *from = strrchr(buf_str(&text), ')');
    if (!from ||
        sscanf(from, ") %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &state, &parent,
               &session, &user, &kernel) != 5 ||
        state == 'Z' || state == 'X')
        return false;
    *ret = (struct evidence_process){pid, parent, session, state, user + kernel};
    return true;
}

struct evidence evidence_scan(const char *proc, struct arena *a)
{
    struct evidence e = {arena_array(a, EVIDENCE_PROCESSES_MAX, struct evidence_process), 0};
    int64_t pid;
    cleanup_closedir DIR *d = opendir(proc);

    for (const struct dirent *f; d && e.n < EVIDENCE_PROCESSES_MAX && (f = readdir(d));)
        e.n += sv_i64(sv_from(f->d_name), 1, INT32_MAX, &pid) &&
               evidence_read(proc, (pid_t)pid, &e.processes[e.n]);
    return e;
}

bool evidence_is_python(const char *proc, pid_t pid)
{
    char path[PATH_MAX], target[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%d/exe", proc, (int)pid);
    const ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *name = strrchr(target, '/');
    return strncmp(name ? name + 1 : target, "python", strlen("python")) == 0;
}

static const struct evidence_process *child(const struct evidence *e, pid_t parent, pid_t session)
{
    for (int i = 0; i < e->n; i++)
        if (e->processes[i].parent == parent && e->processes[i].session == session)
            return &e->processes[i];
    return NULL;
}

/* The leader, or if it has ended the first process that it started. */
static const struct evidence_process *first_of(const struct evidence *e, pid_t session)
{
    const struct evidence_process *first = NULL;

    for (int i = e->n - 1; i >= 0; i--)
        if (e->processes[i].session == session && (!first || first->pid != session))
            first = &e->processes[i];
    return first;
}

pid_t evidence_main(const struct evidence *e, const char *proc, pid_t leader)
{
    const struct evidence_process *p = first_of(e, leader), *next;

    for (int depth = 0; p && depth < DEPTH_MAX && p->state != 'T' && !evidence_is_python(proc, p->pid);
         depth++) {
        if (!(next = child(e, p->pid, leader)))
            break;
        p = next;
    }
    return p ? p->pid : 0;
}

int evidence_pythons(const struct evidence *e, const char *proc, pid_t session, pid_t main, pid_t *pids,
                     int max)
{
    int n = 0;

    for (int i = 0; i < e->n && n < max; i++)
        if (e->processes[i].session == session && e->processes[i].pid != main &&
            evidence_is_python(proc, e->processes[i].pid))
            pids[n++] = e->processes[i].pid;
    return n;
}

void evidence_wchan(const char *proc, pid_t pid, char out[static SUSPECT_WCHAN_BYTES])
{
    cleanup_buf struct buf text = BUF_INIT(FILE_BYTES);

    out[0] = '\0';
    if (!read_file(proc, pid, "wchan", &text) || strcmp(buf_str(&text), "0") == 0)
        return;
    snprintf(out, SUSPECT_WCHAN_BYTES, "%.*s",
             (int)strspn(buf_str(&text), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
             buf_str(&text));
}

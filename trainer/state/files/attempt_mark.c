/* attempt_mark.c - take the mark of an attempt, and remove those of other attempts. */
#include "trainer/state/files/attempt_mark.h"

#include "common/fsutil.h"
#include "common/sv.h"
#include "trainer/state/files/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".attempt-"
#define GONE ".attempt-gone" /* a mark that is being removed */
#define REFUSED "refused-"

enum { NOT_A_MARK = -1 };

void attempt_mark_name(const struct attempt_mark *m, char out[static ATTEMPT_NAME_BYTES])
{
    snprintf(out, ATTEMPT_NAME_BYTES, PREFIX "%d", m->number);
}

static int number_of(const char *name)
{
    int64_t n;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
        !sv_i64(sv_from(name + strlen(PREFIX)), 0, ATTEMPT_MAX, &n))
        return NOT_A_MARK;
    return (int)n;
}

/* Whether another launch of a lower attempt has stopped at this mark, and its owner has not written since.
 * Otherwise leave a folder for this launch. */
static bool was_refused(int folder, const char *mark, uint32_t launch)
{
    cleanup_close int fd = folder_open(folder, mark);
    cleanup_closedir DIR *names = fd < 0 ? NULL : folder_names(fd);
    char own[32];
    bool other = false;

    snprintf(own, sizeof(own), REFUSED "%08" PRIx32, launch);
    for (struct dirent *e; names && (e = readdir(names));)
        other |= strncmp(e->d_name, REFUSED, strlen(REFUSED)) == 0 && strcmp(e->d_name, own) != 0;
    if (fd >= 0 && !other)
        (void)mkdirat(fd, own, 0777);
    return other;
}

/* Stop at the mark of a newer attempt, and remove the others. An attempt whose mark is gone stops at any. */
static int pass_others(const struct attempt_mark *m, int folder, bool *removed, struct err *err)
{
    cleanup_closedir DIR *names = folder_names(folder);

    if (!names)
        return err_errno(err, ERR_FATAL, errno, "cannot list it");
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(names);
        if (!e)
            return errno ? err_errno(err, ERR_FATAL, errno, "cannot list it") : 0;
        const int n = number_of(e->d_name);
        if (n == NOT_A_MARK || n == m->number)
            continue;
        if (m->held || (n > m->number && !was_refused(folder, e->d_name, m->launch)))
            return err_set(err, ERR_PEER,
                           "attempt %d of the job writes here, so this one, attempt %d, ends%s", n, m->number,
                           m->held ? "" : "; if the job's status was cleared, the next attempt goes on");
        folder_remove(folder, GONE, true);
        /* Renamed before it is removed, so that its owner's renames fail from now on. */
        if (renameat(folder, e->d_name, folder, GONE) && errno != ENOENT)
            return err_errno(err, ERR_FATAL, errno, "%s", e->d_name);
        folder_remove(folder, GONE, true);
        *removed = true;
    }
}

static int take(struct attempt_mark *m, int folder, struct err *err)
{
    char own[ATTEMPT_NAME_BYTES];
    bool removed = false;

    attempt_mark_name(m, own);
    if (m->held && faccessat(folder, own, F_OK, 0) == 0)
        return 0;
    if (m->held && pass_others(m, folder, &removed, err))
        return -1;
    m->held = false;
    const bool created = mkdirat(folder, own, 0777) == 0;
    if (!created && errno != EEXIST)
        return err_errno(err, ERR_FATAL, errno, "%s", own);
    if (pass_others(m, folder, &removed, err)) {
        (void)unlinkat(folder, own, AT_REMOVEDIR);
        return -1;
    }
    if ((created || removed) && fs_sync_folder(folder))
        return err_errno(err, ERR_FATAL, errno, "cannot sync it");
    m->held = true;
    return 0;
}

int attempt_mark_take(struct attempt_mark *m, int folder, const char *dir, struct err *err)
{
    return m->known && take(m, folder, err) ? err_wrap(err, "%s", dir) : 0;
}

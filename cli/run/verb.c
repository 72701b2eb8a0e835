/* verb.c - kubectl ptj run: run a job's manifest on this machine, without a cluster. */
#include "cli/jobfile.h"
#include "cli/run/localpod.h"
#include "cli/run/mounts.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/shown.h"
#include "cli/texts.h"
#include "common/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- start a process for each pod, and wait for all of them */

enum { PROCESSES_MAX = 16 };

enum { GRACE_S = 30 };

/* Become the pod's program; returns only on failure, with the exit status that a shell has then: 127 not found, 126 not
 * executable. */
static int processes_become(const struct localpod *pod, struct err *err)
{
    for (int i = 0; i < pod->n_env; i++)
        if (pod->env[i].value && setenv(pod->env[i].name, pod->env[i].value, 1) < 0)
            return err_errno(err, ERR_FATAL, errno, "%.60s", pod->env[i].name), 126;
    signal(SIGPIPE, SIG_DFL); /* main ignores it */
    execvp(pod->argv[0], (char *const *)(uintptr_t)pod->argv);
    const int status = errno == ENOENT ? 127 : 126;
    err_errno(err, ERR_FATAL, errno, "pod %.63s: %.100s", pod->name, pod->argv[0]);
    return status;
}

struct run {
    pid_t pids[PROCESSES_MAX];
    bool ended[PROCESSES_MAX];
    int n, alive;
    bool succeeded;      /* the first pod: what the others do then no longer counts */
    int status;          /* of the first failure; 0: none yet */
    int64_t deadline_ms; /* of the next signal to those that are left; 0: none is due */
    int signal;          /* that is due then */
};

static void kill_all(const struct run *r, int sig)
{
    for (int i = 0; i < r->n; i++)
        if (!r->ended[i])
            kill(r->pids[i], sig);
}

/* End those that are left: now, and by force when their time is over. */
static void end_rest(struct run *r)
{
    kill_all(r, SIGTERM);
    r->signal = SIGKILL;
    r->deadline_ms = clock_mono_ms() + GRACE_S * 1000;
}

static void note_end(struct run *r, int i, int wait_status)
{
    const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);

    r->ended[i] = true;
    r->alive--;
    if (r->succeeded || r->status)
        return;
    if (status) {
        r->status = status;
        end_rest(r);
    } else if (i == 0) {
        r->succeeded = true;
        r->signal = SIGTERM;
        r->deadline_ms = clock_mono_ms() + GRACE_S * 1000;
    }
}

static void reap(struct run *r)
{
    int status;

    for (int i = 0; i < r->n; i++)
        if (!r->ended[i] && waitpid(r->pids[i], &status, WNOHANG) == r->pids[i])
            note_end(r, i, status);
}

/* What a terminal sends goes to the whole process group, so only others' signals are passed on. */
static void take_signal(struct run *r, const siginfo_t *info)
{
    if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL)
        kill_all(r, info->si_signo);
    reap(r);
}

static void on_deadline(struct run *r)
{
    if (r->signal == SIGTERM) {
        end_rest(r);
        return;
    }
    kill_all(r, r->signal);
    r->deadline_ms = 0;
}

static void wait_for_all(struct run *r, const sigset_t *set)
{
    while (r->alive) {
        const int64_t left = r->deadline_ms - clock_mono_ms();
        const struct timespec limit = {.tv_sec = left > 0 ? left / 1000 : 0,
                                       .tv_nsec = left > 0 ? left % 1000 * 1000000 : 0};
        siginfo_t info;
        if (r->deadline_ms && left <= 0)
            on_deadline(r);
        else if ((r->deadline_ms ? sigtimedwait(set, &info, &limit) : sigwaitinfo(set, &info)) > 0)
            take_signal(r, &info);
    }
}

static int start(struct run *r, const struct localpod *pod, const sigset_t *old, struct err *err)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    struct err why;

    if (pid < 0)
        return err_errno(err, ERR_FATAL, errno, "pod %.63s: fork", pod->name);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(126);
        sigprocmask(SIG_SETMASK, old, NULL);
        const int status = processes_become(pod, &why);
        say("kubectl ptj run", "%s", why.msg);
        _exit(status);
    }
    r->pids[r->n++] = pid;
    r->alive++;
    return 0;
}

/* Start all and wait for them. The first failure ends the others, and its status (128 + n for signal n) is returned; after the
 * success of the first pod the others have 30 s, and it is the result. SIGTERM, SIGINT, SIGHUP and SIGQUIT are passed on. -1 with *err. */
static int processes_run(const struct localpod *pods, int n, struct err *err)
{
    static const int SIGNALS[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct run r = {0};
    sigset_t set, old;
    int failed = 0;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++)
        sigaddset(&set, SIGNALS[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    for (int i = 0; i < n && !failed; i++)
        failed = start(&r, &pods[i], &old, err);
    if (failed)
        end_rest(&r);
    wait_for_all(&r, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return failed ? -1 : r.status;
}

/* ---- the verb */

enum { TEXT_MAX = 16 << 20 };

static const char *of_shell(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static const struct expand_scope SHELL = {of_shell, NULL};

/* The one job among the objects of the file, or the one of this name. */
static struct trainjob *read_job(const struct args *a, const cJSON *entries, struct err *err)
{
    const char *name = args_text(a, "name", NULL);
    const cJSON *entry, *found = NULL;
    int n = 0;

    cJSON_ArrayForEach(entry, entries)
    {
        const cJSON *o = jobfile_object(entry);
        const char *kind = json_str(o, "kind");
        const char *own = json_meta(o, "name");
        if (kind && !strcmp(kind, TRAINJOB_KIND) && (!name || (own && !strcmp(own, name)))) {
            found = entry;
            n++;
        }
    }
    if (n != 1) {
        err_set(err, ERR_INVALID, "%.100s: expected one " TRAINJOB_KIND "%s%.63s, found %d%s", a->operands[0],
                name ? " named " : "", name ? name : "", n,
                n ? ": choose with --name" : " (kubectl ptj convert makes one of Kubeflow's jobs)");
        return NULL;
    }
    struct trainjob *job = jobfile_decode(jobfile_object(found), args_text(a, "namespace", "default"), err);
    if (!job)
        err_wrap(err, "%.100s", jobfile_place(found));
    return job;
}

/* Report what differs from the cluster. */
static void report_differences(const struct localpod *pod)
{
    for (int i = 0; i < pod->n_env; i++) {
        const struct localpod_variable *v = &pod->env[i];
        if (v->from)
            say("kubectl ptj run", "%s comes from %s: %s", v->name, v->from,
                v->value ? "taken from this shell" : "not set; export it before");
    }
    if (pod->working_dir)
        say("kubectl ptj run", "the working folder %s is not used: the program runs in the current one",
            pod->working_dir);
}

/* The text of a pod. A pipe or file gets it as it is, to be pasted; a terminal would obey escape sequences in the manifest. *cut: a
 * part is left out. */
static int print_text(const struct buf *text, bool on_terminal, bool *cut, struct err *err)
{
    cleanup_buf struct buf shown = BUF_INIT(TEXT_MAX);
    struct sv rest = {text->data, text->len}, line;

    while (on_terminal && rest.len && sv_next(&rest, '\n', &line)) {
        shown_line(&shown, line);
        buf_puts(&shown, "\n", NULL);
    }
    if (buf_check(&shown, err) < 0)
        return -1;
    const struct buf *out = on_terminal ? &shown : text;
    *cut |= out->len != text->len || memcmp(out->data, text->data, out->len) != 0;
    fwrite(out->data, 1, out->len, stdout);
    return 0;
}

/* One after the other: a thousand pods need not be in memory. */
static int print_all(struct mounts *m, int first, int n, struct err *err)
{
    const bool on_terminal = isatty(STDOUT_FILENO);
    bool cut = false;

    for (int i = 0; i < n; i++) {
        cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
        cleanup_arena struct arena arena = {0};
        struct localpod pod;
        if (localpod_make(m->job, first + i, &SHELL, &arena, &pod, err) < 0 ||
            mounts_apply(m, &pod, &arena, err) < 0)
            return -1;
        if (i == 0)
            report_differences(&pod);
        buf_printf(&text, NULL, "# pod %s\n", pod.name);
        localpod_print(&pod, &text);
        if (buf_check(&text, err) < 0 || print_text(&text, on_terminal, &cut, err) < 0)
            return -1;
    }
    if (cut)
        say("kubectl ptj run",
            "a terminal does not show control characters in values: a file or a pipe gets all of them");
    return 0;
}

static int start_all(struct mounts *m, int first, int n, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    struct localpod *pods = arena_array(&arena, (size_t)n, struct localpod);

    for (int i = 0; i < n; i++)
        if (localpod_make(m->job, first + i, &SHELL, &arena, &pods[i], err) < 0 ||
            mounts_apply(m, &pods[i], &arena, err) < 0)
            return -1;
    report_differences(&pods[0]);
    if (n > 1 || m->folder[0]) /* this process stays, to remove the folder */
        return processes_run(pods, n, err);
    fflush(NULL);
    const int status = processes_become(&pods[0], err);
    say("kubectl ptj run", "%s", err->msg);
    return status;
}

static int run_pods(struct mounts *m, struct err *err)
{
    const struct args *a = m->args;
    const struct trainjob *job = m->job;
    int first = 0;
    int n = job->spec.pods;

    if (args_has(a, "type") || args_has(a, "index")) {
        first = localpod_order(job, args_text(a, "type", NULL), args_i64(a, "index", 0), err);
        n = 1;
    }
    if (first < 0)
        return -1;
    if (n > PROCESSES_MAX && !m->dry_run)
        return err_set(
            err, ERR_INVALID,
            "the job has %d pods, at most %d run on one machine: choose one with --type and --index", n,
            PROCESSES_MAX);
    if (!m->dry_run)
        return start_all(m, first, n, err);
    return print_all(m, first, n, err) < 0 ? -1 : m->refused;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    (void)s;
    cleanup_json cJSON *entries = cJSON_CreateArray();

    if (jobfile_read(a->operands[0], entries, err) < 0)
        return -1;
    cleanup_trainjob struct trainjob *job = read_job(a, entries, err);
    struct mounts m = {.args = a, .entries = entries, .job = job, .dry_run = args_has(a, "dry-run")};
    if (!job || mounts_check(&m, err) < 0)
        return -1;
    const int status = run_pods(&m, err);
    mounts_remove(&m);
    return status;
}

static const struct option_row OPTIONS[] = {
    {"name", 0, "NAME", .help = "which job, if the file has several"},
    {"type", 0, "TYPE", .help = "run one pod, of this type (default: the first)"},
    {"index", 0, "N", option_integer, .max = TRAINJOB_PODS_MAX,
     .help = "run one pod, of this index in its type (default: 0)"},
    {"namespace", 'n', "NAME", .help = "the namespace of a job without one (default: default)"},
    {"volume", 0, "NAME=FOLDER...", .help = "use this folder for that volume; repeatable"},
    {"dry-run", 0, NULL, .help = "print the commands for a shell, run nothing"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj run job.yaml", "All pods of the job, side by side."},
    {"kubectl ptj run job.yaml --dry-run", "The commands alone, to read or to copy."},
    {"kubectl ptj submit train.py --image any --dry-run | kubectl ptj run -",
     "A script, as a job would run it."},
    {"kubectl ptj run job.yaml --volume data=/home/me/data", "With a folder for the volume data."},
    {"kubectl ptj convert pytorchjob.yaml | kubectl ptj run -", "A job of Kubeflow, on this machine."},
    {0},
};

const struct verb VERB_RUN = {
    .name = "run",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_FILES,
    .summary = "run a job's manifest on this machine, without a cluster",
    .about = run_txt,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .offline = true,
    .run = run,
};

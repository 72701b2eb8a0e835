/* logs.c - open the folders, files and pipes for the ranks' output; logs_tee.c moves the bytes. */
#include "launcher/logs.h"
#include "common/fsutil.h"
#include "host/rank_contract.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether some output goes to files; `alone`: to files and not to the console. */
static bool wants_files(const struct options *o, bool alone)
{
    for (int i = 0; i < o->nproc; i++)
        if (o->redirects[i] || (!alone && o->tee[i]))
            return true;
    return o->filters[0] || o->filters[1];
}

/* Whether output would be lost without a folder. */
static bool needs_files(const struct options *o)
{
    return o->log_dir || wants_files(o, true);
}

/* Ranks find their error file by its path, also when they have changed their working folder. */
static const char *absolute(const char *dir, struct arena *a)
{
    char here[PATH_MAX];

    return dir[0] == '/' || !getcwd(here, sizeof(here)) ? dir : arena_printf(a, "%s/%s", here, dir);
}

static char *safe_name(const char *run_id, struct arena *a)
{
    char *name = arena_strdup(a, run_id);

    for (char *p = name; *p; p++)
        if (*p == '/')
            *p = '_';
    return name;
}

int logs_open(struct logs *l, const struct options *o, const char *run_id, struct err *err)
{
    const char *tmp = getenv("TMPDIR"), *base = o->log_dir;

    *l = (struct logs){
        .options = o, .filtered = {-1, -1}, .sinks = {BUF_INIT(LOGS_SINK_BYTES), BUF_INIT(LOGS_SINK_BYTES)}};
    l->ranks = arena_array(&l->arena, (size_t)o->nproc, struct log_rank);
    for (int i = 0; i < o->nproc; i++)
        for (int s = 0; s < LOGS_STREAMS; s++)
            l->ranks[i].streams[s] = (struct log_stream){.child = -1,
                                                         .pipe = -1,
                                                         .file = -1,
                                                         .line.text = BUF_INIT(LOGS_TEED_LINE_BYTES),
                                                         .tail = BUF_INIT(LOGS_TAIL_BYTES)};
    if (base && fs_mkdirs(base, err) < 0)
        return err_wrap(err, "--log-dir=%.80s", base);
    l->temporary = !base && !wants_files(o, false);
    if (!base)
        base = tmp && *tmp ? tmp : "/tmp";
    char *dir = arena_printf(&l->arena, "%s/%s_XXXXXX", absolute(base, &l->arena),
                             o->log_dir ? safe_name(run_id, &l->arena) : "torchelastic");
    if (mkdtemp(dir))
        l->run_dir = dir;
    else if (needs_files(o))
        return err_errno(err, ERR_INVALID, errno, "cannot create a folder for logs in %.120s (--log-dir)",
                         base);
    return 0;
}

static void close_stream(struct log_stream *s)
{
    close_fd(&s->child);
    close_fd(&s->pipe);
    close_fd(&s->file);
    tee_clear(&s->line);
    buf_clear(&s->tail);
}

/* Remove the run's folders, error files and progress file; a folder with other files stays. */
static void remove_empty(struct logs *l)
{
    for (int attempt = 0; attempt <= l->last_attempt; attempt++) {
        for (int i = 0; i < l->options->nproc; i++) {
            char *dir = arena_printf(&l->arena, "%s" CONTRACT_ATTEMPT "%d/%d", l->run_dir, attempt, i);
            unlink(arena_printf(&l->arena, "%s/error.json", dir));
            rmdir(dir);
        }
        rmdir(arena_printf(&l->arena, "%s" CONTRACT_ATTEMPT "%d", l->run_dir, attempt));
    }
    unlink(arena_printf(&l->arena, "%s" LOGS_PROGRESS_FILE, l->run_dir));
    rmdir(l->run_dir);
}

void logs_close(struct logs *l)
{
    for (int i = 0; l->ranks && i < l->options->nproc; i++)
        for (int s = 0; s < LOGS_STREAMS; s++) {
            close_stream(&l->ranks[i].streams[s]);
            buf_release(&l->ranks[i].streams[s].line.text);
            buf_release(&l->ranks[i].streams[s].tail);
        }
    for (int s = 0; s < LOGS_STREAMS; s++) {
        buf_release(&l->sinks[s]);
        close_fd(&l->filtered[s]);
    }
    if (l->temporary && l->run_dir)
        remove_empty(l);
    arena_release(&l->arena);
}

static int open_file(const char *path, int *fd, struct err *err)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return *fd < 0 ? err_errno(err, ERR_FATAL, errno, "cannot write %.150s", path) : 0;
}

static int open_pipe(struct log_stream *stream, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot create a pipe");
    stream->pipe = ends[0];
    stream->child = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? err_errno(err, ERR_FATAL, errno, "pipe") : 0;
}

/* Decide where stream `s` of local rank `local` goes. */
static int begin_stream(struct logs *l, int local, int s, const char *dir, struct err *err)
{
    static const char *const names[] = {"stdout.log", "stderr.log"};
    const struct options *o = l->options;
    struct log_stream *stream = &l->ranks[local].streams[s];
    const int bit = s == 0 ? STD_OUT : STD_ERR;

    close_stream(stream);
    stream->heard_ms = 0;
    const bool filed = o->redirects[local] & bit || (!o->shown[local] && o->log_dir);
    stream->hidden = l->watches_all && !(o->tee[local] & bit) && (filed || !o->shown[local]);
    stream->teed = o->tee[local] & bit || stream->hidden;
    if (stream->hidden && !filed)
        return open_pipe(stream, err);
    if (stream->teed) {
        if (dir && open_file(arena_printf(&l->arena, "%s/%s", dir, names[s]), &stream->file, err) < 0)
            return -1;
        return open_pipe(stream, err);
    }
    if (filed)
        return open_file(arena_printf(&l->arena, "%s/%s", dir, names[s]), &stream->child, err);
    if (!o->shown[local])
        return open_file("/dev/null", &stream->child, err);
    return (bit == STD_ERR ? l->watches : l->watches_out) ? open_pipe(stream, err) : 0;
}

/* The prefix of teed lines: "[default0]:", or from the option or TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE. */
static const char *make_prefix(struct logs *l, int local, int rank)
{
    const char *t = l->options->prefix_template ? l->options->prefix_template
                                                : getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
    char host[HOST_NAME_MAX + 1] = "";
    const char *names[] = {"${role_name}", "${local_rank}", "${rank}", "${hostname}"};
    const char *values[] = {l->options->role, arena_printf(&l->arena, "%d", local),
                            arena_printf(&l->arena, "%d", rank), host};
    char *out = arena_strdup(&l->arena, "");

    gethostname(host, sizeof(host) - 1);
    for (t = t && *t ? t : "[${role_name}${local_rank}]:"; *t;) {
        size_t used = 0;
        for (size_t i = 0; i < ARRAY_LEN(names) && !used; i++)
            if (strncmp(t, names[i], strlen(names[i])) == 0) {
                out = arena_printf(&l->arena, "%s%s", out, values[i]);
                used = strlen(names[i]);
            }
        if (!used)
            out = arena_printf(&l->arena, "%s%c", out, *t);
        t += used ? used : 1;
        if (strlen(out) > 200)
            break;
    }
    return out;
}

static int begin_filtered(struct logs *l, int attempt, struct err *err)
{
    static const char *const names[] = {"filtered_stdout.log", "filtered_stderr.log"};

    for (int s = 0; s < LOGS_STREAMS; s++) {
        close_fd(&l->filtered[s]);
        if (l->options->filters[s] &&
            open_file(arena_printf(&l->arena, "%s" CONTRACT_ATTEMPT "%d/%s", l->run_dir, attempt, names[s]),
                      &l->filtered[s], err) < 0)
            return -1;
    }
    return 0;
}

int logs_begin(struct logs *l, int attempt, int first_rank, struct err *err)
{
    l->last_attempt = attempt;
    for (int i = 0; i < l->options->nproc; i++) {
        struct log_rank *r = &l->ranks[i];
        char *dir = l->run_dir
                        ? arena_printf(&l->arena, "%s" CONTRACT_ATTEMPT "%d/%d", l->run_dir, attempt, i)
                        : NULL;
        if (dir && fs_mkdirs(dir, err) < 0) {
            if (needs_files(l->options))
                return -1;
            dir = NULL; /* a full disk must not stop the training */
        }
        if (dir)
            r->error_file = arena_printf(&l->arena, "%s/error.json", dir);
        else if (r->error_file) /* the last attempt's: the trainer identifies the launch by its path */
            unlink(r->error_file);
        r->prefix = make_prefix(l, i, first_rank + i);
        for (int s = 0; s < LOGS_STREAMS; s++)
            if (begin_stream(l, i, s, dir, err) < 0)
                return -1;
    }
    return begin_filtered(l, attempt, err);
}

void logs_started(struct logs *l, int local)
{
    for (int s = 0; s < LOGS_STREAMS; s++)
        close_fd(&l->ranks[local].streams[s].child);
}

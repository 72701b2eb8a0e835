/* tracker.c - follow the progress of a launcher's ranks, and serve it. */
#include "launcher/progress/tracker.h"
#include "common/clock.h"
#include "common/contract.h"
#include "host/rank_contract.h"

#include <ctype.h>
#include <string.h>

static void take(struct tracker *t, const struct progress_seen *s, bool from_file)
{
    const struct clock c = clock_system();

    progress_take(&t->answer.progress, s, from_file, c.mono_ms(c.ctx), c.wall_ms(c.ctx));
}

static void seen_line(void *ctx, const struct progress_seen *s)
{
    take(ctx, s, false);
}

static void tell(struct tracker *t)
{
    if (t->serve)
        serve_set(t->serve, &t->answer);
}

/* Whether this second's output exceeds TRACKER_BYTES_PER_S: parsing must not slow down a rank that prints
 * fast. */
static bool floods(struct tracker *t, size_t len)
{
    const int64_t now_ms = clock_mono_ms();

    if (now_ms >= t->flood_ms + 1000) {
        t->flood_ms = now_ms;
        t->flood_bytes = 0;
    }
    t->flood_bytes += len;
    return t->flood_bytes > TRACKER_BYTES_PER_S;
}

static void heard(void *ctx, int local, int stream, const char *bytes, size_t len)
{
    struct tracker *t = ctx;

    if (!t->has_rank0 || local != 0)
        return;
    if (floods(t, len)) {
        t->streams[stream].len = RECOGNISER_GAP;
        return;
    }
    recogniser_take(&t->streams[stream], bytes, len, seen_line, t);
    tell(t);
}

static const char *value_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Fill in the fields of the answer that come from the environment. */
static int read_names(struct answer *a, struct err *err)
{
    const char *uid = value_of(CONTRACT_ENV_JOB_UID), *attempt = value_of(CONTRACT_ENV_ATTEMPT);

    for (size_t i = 0; uid && uid[i]; i++)
        if (i == sizeof(a->job_uid) - 1 || !(isalnum((unsigned char)uid[i]) || uid[i] == '-'))
            return err_set(err, ERR_INVALID,
                           CONTRACT_ENV_JOB_UID "=%.80s: expected at most %d of A-Z a-z 0-9 -", uid,
                           ANSWER_UID_BYTES - 1);
    if (uid)
        memcpy(a->job_uid, uid, strlen(uid) + 1);
    if (attempt && !sv_i64(sv_from(attempt), 0, INT64_MAX, &a->attempt))
        return err_set(err, ERR_INVALID, CONTRACT_ENV_ATTEMPT "=%.80s: expected a number", attempt);
    return 0;
}

int tracker_open(struct tracker *t, struct logs *l, struct err *err)
{
    const char *text = value_of(CONTRACT_ENV_PROGRESS_PORT);
    int64_t port;

    *t = (struct tracker){.answer = {.straggler_rank = -1}};
    progress_init(&t->answer.progress);
    t->path = value_of(CONTRACT_ENV_PROGRESS_FILE);
    if (!text)
        return 0;
    if (!sv_i64(sv_trim(sv_from(text)), 1, 65535, &port))
        return err_set(err, ERR_INVALID,
                       "no progress: " CONTRACT_ENV_PROGRESS_PORT "=%.80s: expected 1..65535", text);
    if (read_names(&t->answer, err) < 0)
        return err_wrap(err, "no progress on port %d", (int)port);
    if (!t->path && l->run_dir)
        t->path = arena_printf(&l->arena, "%s" LOGS_PROGRESS_FILE, l->run_dir);
    if (!(t->serve = serve_start((int)port, &t->answer, err)))
        return err_wrap(err, "no progress on port %d", (int)port);
    l->watches = l->watches_out = true;
    l->heard = heard;
    l->heard_ctx = t;
    return 0;
}

void tracker_close(struct tracker *t)
{
    serve_stop(t->serve);
    t->serve = NULL;
}

void tracker_begin(struct tracker *t, bool has_rank0, int restarts)
{
    struct progress_seen of_earlier;

    if (!t->serve && !t->path)
        return;
    t->has_rank0 = has_rank0;
    memset(t->streams, 0, sizeof(t->streams));
    progress_init(&t->answer.progress);
    t->answer.restarts = restarts;
    t->answer.straggler_rank = -1;
    /* The present content is from ranks that have ended. */
    if (t->path)
        (void)progress_file_read(&t->file, t->path, &of_earlier);
    t->file_ms = 0;
    tell(t);
}

void tracker_look(struct tracker *t, int64_t now_ms)
{
    const struct progress_file before = t->file;
    struct progress_seen s;

    if (!t->has_rank0 || !t->path)
        return;
    if (progress_file_read(&t->file, t->path, &s)) {
        take(t, &s, true);
        tell(t);
    }
    if (memcmp(&before, &t->file, sizeof(before)) != 0)
        t->file_ms = now_ms;
}

void tracker_last(struct tracker *t, struct buf *out)
{
    tracker_look(t, 0);
    if (t->serve && t->has_rank0 && t->answer.progress.wall_ms)
        answer_progress(&t->answer, out);
}

void tracker_straggler(struct tracker *t, int64_t rank, double ratio)
{
    t->answer.straggler_rank = rank;
    t->answer.straggler_ratio = ratio;
    tell(t);
}

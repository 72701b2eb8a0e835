/* resume.c - rank 0 chooses the checkpoint to resume from and broadcasts its state. */
#include "trainer/state/resume.h"

#include "collectives/noted.h"
#include "trainer/state/candidates.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Of more notes than fit the last is the one that is kept: it says what was done. */
void resume_note(struct resume_result *r, bool warning, const char *fmt, ...)
{
    va_list ap;

    if (r->notes == RESUME_NOTES_MAX)
        r->notes--;
    r->note[r->notes].warning = warning;
    va_start(ap, fmt);
    vsnprintf(r->note[r->notes].text, sizeof(r->note[0].text), fmt, ap);
    va_end(ap);
    r->notes++;
}

static int take(const struct snapshot *into, const char *path, uint32_t config, struct resume_result *r,
                struct err *err)
{
    const struct cursor *c = into->cursor;
    struct manifest m;

    if (ckpt_manifest(path, &m, err) || snapshot_read(into, path, &m, err))
        return -1;
    if (m.config != config)
        resume_note(r, false, "%.120s is of another configuration", path);
    resume_note(r, false, "resumed from %.120s: epoch %lld, batch %lld, step %lld", path, (long long)c->epoch,
                (long long)c->epoch_step, (long long)c->step);
    r->resumed = true;
    memcpy(r->run_id, m.run_id, sizeof(r->run_id));
    return 0;
}

/* The first that can be read. 1: resumed, 0: there is none, -1: one may be whole that could not be read for lack of memory or
 * the like; another try is better than to begin before it. */
static int first_of(const struct snapshot *into, const struct candidates *c, uint32_t config,
                    struct resume_result *ret, struct err *err)
{
    for (size_t i = 0; i < c->len; i++) {
        struct err damage = c->of[i].why;
        if (!c->of[i].damaged && take(into, c->of[i].path, config, ret, &damage) == 0)
            return 1;
        if (err_is_shortage(&damage)) {
            *err = damage;
            return -1;
        }
        resume_note(ret, true, "damaged checkpoint skipped: %s", damage.msg);
    }
    return 0;
}

/* This run's own; with `launch` of that launch alone. 1, 0 or -1 as above. */
static int own(const struct snapshot *into, const struct resume_options *o, uint32_t launch, bool tell,
               struct resume_result *ret, struct err *err)
{
    const struct candidates_wanted wanted = {o->run_id, o->config, launch, true};
    cleanup_arena struct arena a = {0};
    struct candidates all;
    struct err why = {0};

    if (candidates_find(o->dir, &wanted, &a, &all, &why)) {
        if (err_is_shortage(&why)) {
            *err = why;
            return err_wrap(err, "--ckpt_dir");
        }
        if (tell && why.kind != ERR_NOT_FOUND)
            resume_note(ret, true, "started afresh: --ckpt_dir: %s", why.msg);
        return 0;
    }
    int found = first_of(into, &all, o->config, ret, err);
    if (found)
        return found;
    if (tell && all.foreign && all.foreign->same_config)
        resume_note(ret, false, "started afresh: %.80s is of another run: --resume %.80s goes on from it",
                    all.foreign->path, o->dir);
    else if (tell && all.foreign)
        resume_note(ret, false, "started afresh: %.120s is of another configuration", all.foreign->path);
    else if (tell && all.len)
        resume_note(ret, true, "started afresh: no checkpoint in %.80s can be read", o->dir);
    return 0;
}

static bool is_checkpoint(const char *path)
{
    char file[PATH_MAX];
    struct stat st;
    struct err ignored;

    return !ckpt_path(file, path, "manifest.json", &ignored) && !stat(file, &st);
}

static int from_path(const struct snapshot *into, const struct resume_options *o, struct resume_result *ret,
                     struct err *err)
{
    const struct candidates_wanted wanted = {.run_id = o->run_id, .config = o->config};
    cleanup_arena struct arena a = {0};
    struct candidates all;

    if (is_checkpoint(o->how))
        return take(into, o->how, o->config, ret, err) ? err_wrap(err, "--resume") : 1;
    if (candidates_find(o->how, &wanted, &a, &all, err))
        return err_wrap(err, "--resume");
    int found = first_of(into, &all, o->config, ret, err);
    if (found)
        return found;
    return err_set(err, ERR_INVALID, "--resume: %.160s: no checkpoint in it that can be read", o->how);
}

/* 1: resumed, 0: afresh, -1. */
static int search(const struct snapshot *into, const struct resume_options *o, struct resume_result *ret,
                  struct err *err)
{
    if (strcmp(o->how, "never") == 0)
        return 0;
    if (strcmp(o->how, "auto") == 0)
        return own(into, o, 0, true, ret, err);
    /* A path says where the run begins; a later attempt goes on from where the run has come. What this launch has written tells
     * that there was an earlier one: launchers count no restart when ranks meet anew because a node came or went. */
    int found = 0;
    if (o->later_attempt || o->launch)
        found = own(into, o, o->later_attempt ? 0 : o->launch, false, ret, err);
    return found ? found : from_path(into, o, ret, err);
}

/* What rank 0 tells. */
struct word {
    int32_t found; /* -1: it failed */
    int32_t pad;
    struct cursor cursor;
};

static int spread(const struct snapshot *into, struct collectives *comm, int64_t timeout_ms, struct err *err)
{
    size_t bytes = model_len(into->model) * sizeof(float);
    void *const part[] = {model_values(into->model), model_buffers(into->model), into->optim->m,
                          into->optim->v};
    const size_t len[] = {bytes, model_buffers_bytes(into->model), into->optim->m ? bytes : 0,
                          into->optim->v ? bytes : 0};

    for (size_t i = 0; i < ARRAY_LEN(part); i++)
        if (len[i] && collectives_broadcast(comm, part[i], len[i], 0, timeout_ms, err))
            return -1;
    return 0;
}

int resume(const struct snapshot *into, struct collectives *comm, const struct resume_options *o,
           struct resume_result *ret, struct err *err)
{
    struct word word = {0};
    struct err own = {0};

    *ret = (struct resume_result){0};
    if (comm->rank == 0)
        word.found = search(into, o, ret, &own);
    word.cursor = *into->cursor;
    if (collectives_broadcast(comm, &word, sizeof(word), 0, o->timeout_ms, err) || own.kind) {
        if (own.kind)
            *err = own;
        return -1;
    }
    if (word.found < 0)
        return err_set(err, ERR_PEER, "rank 0 could not resume");
    if (!word.found)
        return 0;
    ret->resumed = true;
    *into->cursor = word.cursor;
    into->optim->step = word.cursor.step;
    return o->in_parts ? 0 : spread(into, comm, o->timeout_ms, err);
}

/* resume.c - rank 0 searches, all receive. */
#include "trainer/resume.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void note(struct resume_result *r, bool warning, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Of more notes than fit the last is the one that is kept: it says what was done. */
static void note(struct resume_result *r, bool warning, const char *fmt, ...)
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

static void note_resumed(struct resume_result *r, const char *path, const struct cursor *c)
{
    note(r, false, "resumed from %.120s: epoch %lld, batch %lld, step %lld", path, (long long)c->epoch,
         (long long)c->epoch_step, (long long)c->step);
    r->resumed = true;
}

/* How a checkpoint differs from what is wanted; NULL: not at all. */
static const char *difference(const struct manifest *m, const struct resume_options *o)
{
    if (strncmp(m->run_id, o->run_id, sizeof(m->run_id) - 1) != 0)
        return "another run";
    return m->config != o->config ? "another configuration" : NULL;
}

/* The newest of `dir` that can be read; any: whoever wrote it. 1: resumed, 0: there is none. */
static int from_folder(const struct snapshot *into, const char *dir, bool any, const struct resume_options *o,
                       struct resume_result *ret, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct manifest m;
    const char *foreign = NULL;
    const char *why = NULL;

    if (ckpt_list(dir, &a, &list, err))
        return -1;
    for (size_t i = 0; i < list.len; i++) {
        const char *path = arena_printf(&a, "%s/%s", dir, list.entry[i].name);
        struct err damage = {0};
        int rc = ckpt_manifest(path, &m, &damage);
        const char *other = rc || any ? NULL : difference(&m, o);
        if (other && !foreign) {
            foreign = list.entry[i].name;
            why = other;
        }
        if (other)
            continue;
        if (!rc && !snapshot_read(into, path, &m, &damage)) {
            note_resumed(ret, path, into->cursor);
            return 1;
        }
        note(ret, true, "damaged checkpoint skipped: %s", damage.msg);
    }
    if (foreign)
        note(ret, false, "started afresh: %.80s/%s is of %s", dir, foreign, why);
    else if (list.len)
        note(ret, true, "started afresh: no checkpoint in %.80s can be read", dir);
    return 0;
}

static int from_path(const struct snapshot *into, const struct resume_options *o, struct resume_result *ret,
                     struct err *err)
{
    char file[PATH_MAX];
    struct manifest m;
    struct stat st;

    if (snprintf(file, sizeof(file), "%s/manifest.json", o->how) >= (int)sizeof(file))
        return err_set(err, ERR_INVALID, "--resume: a path of %zu bytes", strlen(o->how));
    if (stat(file, &st)) {
        int rc = from_folder(into, o->how, true, o, ret, err);
        if (rc == 0)
            err_set(err, ERR_INVALID, "%.160s: no checkpoint in it that can be read", o->how);
        return rc == 1 ? 1 : err_wrap(err, "--resume");
    }
    if (ckpt_manifest(o->how, &m, err) || snapshot_read(into, o->how, &m, err))
        return err_wrap(err, "--resume");
    const char *other = difference(&m, o);
    if (other)
        note(ret, false, "%.120s is of %s", o->how, other);
    note_resumed(ret, o->how, into->cursor);
    return 1;
}

/* 1: resumed, 0: afresh, -1. */
static int search(const struct snapshot *into, const struct resume_options *o, struct resume_result *ret,
                  struct err *err)
{
    struct err why = {0};

    if (strcmp(o->how, "never") == 0)
        return 0;
    if (strcmp(o->how, "auto") != 0)
        return from_path(into, o, ret, err);
    int rc = from_folder(into, o->dir, false, o, ret, &why);
    if (rc < 0 && why.kind != ERR_NOT_FOUND)
        note(ret, true, "started afresh: --ckpt_dir: %s", why.msg);
    return rc == 1;
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
        if (len[i] && comm->broadcast(comm, part[i], len[i], 0, timeout_ms, err))
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
    if (comm->broadcast(comm, &word, sizeof(word), 0, o->timeout_ms, err) || own.kind) {
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
    return o->stages > 1 ? 0 : spread(into, comm, o->timeout_ms, err);
}

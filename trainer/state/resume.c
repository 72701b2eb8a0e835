/* resume.c - rank 0 chooses the checkpoint to resume from and loads its state. */
#include "trainer/state/resume.h"
#include "collectives/noted.h"
#include "trainer/state/files/ckpt_dir.h"
#include "trainer/state/run_id.h"
#include "trainer/state/weights/weights.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- read the manifests of a folder of checkpoints and sort them for resuming */

struct candidate {
    const char *path;
    int64_t step, saved_ms;
    uint32_t launch;
    bool same_config;
    bool set_back;     /* it was written before this launch began from an earlier step */
    bool other_format; /* another version wrote it */
    bool older_own;    /* other_format, and of the run in struct candidate_key */
    const struct err
        *damage; /* its manifest cannot be read, so step and config are not known; NULL: it can */
};

struct candidates {
    struct candidate *of;
    size_t len, room;
    struct err why; /* why the folder cannot be read; kind ERR_NONE: it was read */
};

/* The run that wants to resume. */
struct candidate_key {
    const char *run_id;
    uint32_t config;
};

static int descending(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int newest_step(const void *x, const void *y)
{
    const struct candidate *a = x;
    const struct candidate *b = y;
    const int by_branch = descending(b->set_back, a->set_back), by_step = descending(a->step, b->step);

    return by_branch ? by_branch : by_step ? by_step : descending(a->saved_ms, b->saved_ms);
}

/* The rules in order of weight; the first one by which two candidates differ decides. */
static int last_written(const void *x, const void *y)
{
    const struct candidate *a = x;
    const struct candidate *b = y;
    const int by[] = {
        descending(a->damage != NULL, b->damage != NULL),
        descending(a->same_config, b->same_config),
        descending(a->saved_ms, b->saved_ms),
    };

    for (size_t i = 0; i < ARRAY_LEN(by); i++)
        if (by[i])
            return by[i];
    return newest_step(a, b);
}

static struct candidate look_at(const char *path, int64_t step, struct candidate_key own, struct arena *a)
{
    struct candidate c = {.path = path, .step = step};
    struct manifest m = {0};
    struct err why;

    if (ckpt_manifest(path, &m, &why)) {
        struct err *damage = arena_array(a, 1, struct err);
        *damage = why;
        c.damage = damage;
        c.other_format = why.kind == ERR_CONFLICT;
        c.older_own = c.other_format && strcmp(m.run_id, own.run_id) == 0;
        return c;
    }
    c.saved_ms = m.saved_ms;
    c.launch = m.launch;
    c.same_config = m.config == own.config;
    return c;
}

/* Make room for `more` checkpoints. It doubles, since a folder may have those of thousands of runs. */
static void make_room(struct candidates *c, size_t more, struct arena *a)
{
    if (c->len + more <= c->room)
        return;
    c->room = 2 * (c->len + more);
    struct candidate *of = arena_array(a, c->room, struct candidate);
    if (c->len)
        memcpy(of, c->of, c->len * sizeof(*of));
    c->of = of;
}

/* Whether a later try may read what could not be read now: memory or the like is short, a file server does not
 * answer, or a list broke off (also with EIO, which an NFS mount with `soft` returns). Then a retry is better
 * than to begin earlier, and the error gives exit code 138. */
static bool make_retryable(struct err *err)
{
    static const int server[] = {ESTALE,    ETIMEDOUT,    ENOTCONN, ESHUTDOWN,
                                 EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH};

    for (size_t i = 0; i < ARRAY_LEN(server); i++)
        if (err->code == server[i]) {
            err->kind = ERR_TRANSIENT;
            return true;
        }
    return err->kind == ERR_TRANSIENT || err_is_shortage(err);
}

/* Append the checkpoints of one folder; *list is the folder's content. */
static int append(const char *dir, struct candidate_key own, struct arena *a, struct ckpt_list *list,
                  struct candidates *ret, struct err *err)
{
    if (ckpt_list(dir, a, list, &ret->why)) {
        if (!make_retryable(&ret->why))
            return 0;
        *err = ret->why;
        return -1;
    }
    make_room(ret, list->len, a);
    for (size_t i = 0; i < list->len; i++)
        ret->of[ret->len++] =
            look_at(arena_printf(a, "%s/%s", dir, list->entry[i].name), list->entry[i].step, own, a);
    return 0;
}

static void sort(struct candidates *c, int (*order)(const void *x, const void *y))
{
    if (c->len)
        qsort(c->of, c->len, sizeof(*c->of), order);
}

/* The checkpoints in `dir` itself, the highest step first. */
static int candidates_in(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                         struct err *err)
{
    struct ckpt_list list;

    *ret = (struct candidates){0};
    if (append(dir, own, a, &list, ret, err))
        return -1;
    sort(ret, newest_step);
    return 0;
}

/* The same, plus the checkpoints in the runs' folders below it: those of the same configuration first, sorted
 * by the time of writing, since steps of different runs cannot be compared. One whose manifest cannot be read
 * comes before all that it might precede. needed: whether an error of a run's folder that a later try may
 * not have is one of this call; else, and with other errors, the folder is passed over. */
static int candidates_below(const char *dir, struct candidate_key own, bool needed, struct arena *a,
                            struct candidates *ret, struct err *err)
{
    struct ckpt_list list, run;
    struct err below;

    *ret = (struct candidates){0};
    if (append(dir, own, a, &list, ret, err))
        return -1;
    const struct err why = ret->why;
    for (size_t i = list.len; i < list.len + list.runs; i++)
        if (append(arena_printf(a, "%s/%s", dir, list.entry[i].name), own, a, &run, ret, &below) && needed) {
            *err = below;
            return -1;
        }
    ret->why = why; /* a run's folder that cannot be opened: no checkpoints to resume from */
    sort(ret, last_written);
    return 0;
}

/* ---- the choice */

/* If there are too many notes, the last one replaces the previous: it has the result. */
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
    else
        memcpy(r->run_id, m.run_id, sizeof(r->run_id));
    resume_note(r, false, "resumed from %.120s: epoch %lld, batch %lld, step %lld", path, (long long)c->epoch,
                (long long)c->epoch_step, (long long)c->step);
    r->resumed = true;
    return 0;
}

/* Load the first readable candidate. 1: resumed; 0: none; -1: one could not be read now (make_retryable). */
static int first_of(const struct snapshot *into, const struct candidates *c, uint32_t config,
                    struct resume_result *ret, struct err *err)
{
    for (size_t i = 0; i < c->len; i++) {
        struct err damage;
        if (c->of[i].damage)
            damage = *c->of[i].damage;
        else if (take(into, c->of[i].path, config, ret, &damage) == 0)
            return 1;
        if (make_retryable(&damage)) {
            *err = damage;
            return -1;
        }
        resume_note(ret, true, "%scheckpoint skipped: %s", c->of[i].other_format ? "" : "damaged ",
                    damage.msg);
    }
    return 0;
}

/* Refuse to start afresh if another version of this program has trained this run: that would discard its
 * training. */
static int refuse_older(const struct candidates *c, struct err *err)
{
    for (size_t i = 0; i < c->len; i++)
        if (c->of[i].older_own)
            return err_set(err, ERR_INVALID,
                           "a checkpoint of this run has %.300s: continue with the version that wrote it, or "
                           "remove it to "
                           "start afresh",
                           c->of[i].damage->msg);
    return 0;
}

static void tell_folder(const struct candidates *c, struct resume_result *ret)
{
    if (c->why.kind && c->why.kind != ERR_NOT_FOUND)
        resume_note(ret, true, "--ckpt_dir: %s", c->why.msg);
}

/* Nothing was resumed: report the other checkpoints that exist. */
static void note_others(const struct candidates *all, const char *dir, struct resume_result *ret)
{
    const struct candidate *best = NULL;

    for (size_t i = 0; i < all->len && !best; i++)
        best = all->of[i].damage ? NULL : &all->of[i];
    if (best && best->same_config)
        resume_note(ret, false, "started afresh: %.80s is of another run: --resume %.80s resumes from it",
                    best->path, dir);
    else if (best)
        resume_note(ret, false, "started afresh: %.120s is of another configuration", best->path);
    else if (ret->notes)
        resume_note(ret, true, "started afresh: no checkpoint in %.80s can be read", dir);
}

/* A user may start a run again from one of its earlier checkpoints (--resume PATH). Those of later steps stay,
 * but the restarts of this launch continue what it has trained itself. */
static void mark_set_back(struct candidates *c, uint32_t launch)
{
    int64_t first_ms = INT64_MIN;

    for (size_t i = 0; launch && i < c->len; i++)
        if (!c->of[i].damage && c->of[i].launch == launch &&
            (first_ms == INT64_MIN || c->of[i].saved_ms < first_ms))
            first_ms = c->of[i].saved_ms;
    for (size_t i = 0; i < c->len; i++)
        c->of[i].set_back = !c->of[i].damage && c->of[i].launch != launch && c->of[i].saved_ms < first_ms;
    sort(c, newest_step);
}

/* Resume from this run's own checkpoints; with `launch`, only of that launch. Returns 1, 0 or -1 as above.
 * Reports what may be this run's and was not read: checkpoints in --ckpt_dir itself, where older versions
 * wrote them, and a folder that cannot be opened. */
static int own(const struct snapshot *into, const struct resume_options *o, uint32_t launch, bool tell,
               struct resume_result *ret, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const struct candidate_key me = {o->run_id, o->config};
    struct candidates here, mine, all;
    char dir[PATH_MAX];

    if (run_id_dir(o->dir, o->run_id, o->config, dir, err))
        return -1;
    if (candidates_in(o->dir, me, &a, &here, err) || candidates_in(dir, me, &a, &mine, err) ||
        refuse_older(&here, err) || refuse_older(&mine, err))
        return err_wrap(err, "--ckpt_dir");
    size_t n = 0;
    for (size_t i = 0; i < mine.len; i++)
        if (mine.of[i].damage || (mine.of[i].same_config && (!launch || mine.of[i].launch == launch)))
            mine.of[n++] = mine.of[i];
    mine.len = n;
    mark_set_back(&mine, o->launch);
    const int found = first_of(into, &mine, o->config, ret, err);
    if (found)
        return found;
    /* Nothing is resumed from the runs' folders, and somebody may be removing one. */
    if (candidates_below(o->dir, me, false, &a, &all, err) || refuse_older(&all, err))
        return err_wrap(err, "--ckpt_dir");
    for (size_t i = 0; i < here.len; i++)
        if (here.of[i].damage && !here.of[i].other_format)
            resume_note(ret, true, "damaged checkpoint skipped: %s", here.of[i].damage->msg);
    tell_folder(&here, ret);
    tell_folder(&mine, ret);
    if (tell)
        note_others(&all, o->dir, ret);
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
    cleanup_arena struct arena a = {0};
    struct candidates all;
    const int before = ret->notes; /* notes about the run's own checkpoints */

    if (weights_refuse_pt(o->how, err))
        return err_wrap(err, "--resume");
    if (is_checkpoint(o->how)) {
        if (take(into, o->how, o->config, ret, err) == 0)
            return 1;
        if (!make_retryable(err) && err->kind == ERR_CONFLICT)
            err->kind = ERR_INVALID;
        return err_wrap(err, "--resume");
    }
    if (candidates_below(o->how, (struct candidate_key){o->run_id, o->config}, true, &a, &all, err))
        return err_wrap(err, "--resume");
    if (all.why.kind) {
        *err = all.why;
        return err_wrap(err, "--resume");
    }
    const int found = first_of(into, &all, o->config, ret, err);
    if (found)
        return found;
    return err_set(err, ERR_INVALID, "--resume: %.160s: no checkpoint in it that can be read%s%.400s", o->how,
                   ret->notes > before ? "; " : "", ret->notes > before ? ret->note[before].text : "");
}

/* 1: resumed; 0: start afresh; -1: failure. */
static int search(const struct snapshot *into, const struct resume_options *o, struct resume_result *ret,
                  struct err *err)
{
    if (strcmp(o->how, "never") == 0)
        return 0;
    if (strcmp(o->how, "auto") == 0)
        return own(into, o, 0, true, ret, err);
    /* A path is where the run begins; a later attempt continues from the run's own checkpoints. A checkpoint
     * of this launch also shows an earlier attempt: launchers count no restart when ranks start again because
     * a node joined or left. */
    int found = 0;
    if (o->later_attempt || o->launch)
        found = own(into, o, o->later_attempt ? 0 : o->launch, false, ret, err);
    return found ? found : from_path(into, o, ret, err);
}

/* The result that rank 0 broadcasts. */
struct resume_message {
    int32_t found; /* -1: it failed */
    int32_t pad;
    struct cursor cursor;
};

int resume(const struct snapshot *into, struct collectives *comm, const struct resume_options *o,
           struct resume_result *ret, struct err *err)
{
    struct resume_message word = {0};
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
    return 0;
}

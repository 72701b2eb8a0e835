/* candidates.c - read the manifests of a folder of checkpoints and sort them for resuming. */
#include "trainer/state/candidates.h"

#include <stdlib.h>
#include <string.h>

static int descending(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int newest_step(const void *x, const void *y)
{
    const struct candidate *a = x;
    const struct candidate *b = y;
    int by_step = descending(a->step, b->step);

    return by_step ? by_step : descending(a->saved_ms, b->saved_ms);
}

/* The rules in order of weight; the first one by which two candidates differ decides. */
static int last_written(const void *x, const void *y)
{
    const struct candidate *a = x;
    const struct candidate *b = y;
    const int by[] = {
        descending(a->damaged, b->damaged),
        descending(a->same_config, b->same_config),
        descending(a->saved_ms, b->saved_ms),
    };

    for (size_t i = 0; i < ARRAY_LEN(by); i++)
        if (by[i])
            return by[i];
    return newest_step(a, b);
}

static struct candidate look_at(const char *path, int64_t step, struct candidate_key own)
{
    struct candidate c = {.path = path, .step = step};
    struct manifest m = {0};

    if (ckpt_manifest(path, &m, &c.why)) {
        c.damaged = true;
        c.other_format = c.why.kind == ERR_CONFLICT;
        c.older_own = c.other_format && strcmp(m.run_id, own.run_id) == 0;
        return c;
    }
    c.saved_ms = m.saved_ms;
    c.launch = m.launch;
    c.same_config = m.config == own.config;
    return c;
}

/* Append the checkpoints of one folder; *list is the folder's content. */
static int append(const char *dir, struct candidate_key own, struct arena *a, struct ckpt_list *list,
                  struct candidates *ret, struct err *err)
{
    if (ckpt_list(dir, a, list, &ret->why)) {
        if (!err_is_shortage(&ret->why))
            return 0;
        *err = ret->why;
        return -1;
    }
    if (!list->len)
        return 0;
    struct candidate *of = arena_array(a, ret->len + list->len, struct candidate);
    if (ret->len)
        memcpy(of, ret->of, ret->len * sizeof(*of));
    for (size_t i = 0; i < list->len; i++)
        of[ret->len++] =
            look_at(arena_printf(a, "%s/%s", dir, list->entry[i].name), list->entry[i].step, own);
    ret->of = of;
    return 0;
}

static void sort(struct candidates *c, int (*order)(const void *x, const void *y))
{
    if (c->len)
        qsort(c->of, c->len, sizeof(*c->of), order);
}

int candidates_in(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                  struct err *err)
{
    struct ckpt_list list;

    *ret = (struct candidates){0};
    if (append(dir, own, a, &list, ret, err))
        return -1;
    sort(ret, newest_step);
    return 0;
}

int candidates_below(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                     struct err *err)
{
    struct ckpt_list list, run;

    *ret = (struct candidates){0};
    if (append(dir, own, a, &list, ret, err))
        return -1;
    const struct err why = ret->why;
    for (size_t i = list.len; i < list.len + list.runs; i++)
        if (append(arena_printf(a, "%s/%s", dir, list.entry[i].name), own, a, &run, ret, err))
            return -1;
    ret->why = why; /* a run's folder that cannot be opened: no checkpoints to resume from */
    sort(ret, last_written);
    return 0;
}

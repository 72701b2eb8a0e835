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

/* Rules from the weightiest down; the first that tells two apart decides. */
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

static struct candidate look_at(const char *path, int64_t step, const struct candidates_wanted *w)
{
    struct candidate c = {.path = path, .step = step};
    struct manifest m;

    if (ckpt_manifest(path, &m, &c.why)) {
        c.damaged = true;
        return c;
    }
    c.saved_ms = m.saved_ms;
    c.same_run =
        strncmp(m.run_id, w->run_id, sizeof(m.run_id) - 1) == 0 && (!w->launch || m.launch == w->launch);
    c.same_config = m.config == w->config;
    return c;
}

int candidates_find(const char *dir, const struct candidates_wanted *w, struct arena *a,
                    struct candidates *ret, struct err *err)
{
    struct candidate *foreign = NULL;
    struct ckpt_list list;

    *ret = (struct candidates){0};
    if (ckpt_list(dir, a, &list, err))
        return -1;
    ret->of = arena_array(a, list.len + 1, struct candidate);
    for (size_t i = 0; i < list.len; i++) {
        struct candidate c =
            look_at(arena_printf(a, "%s/%s", dir, list.entry[i].name), list.entry[i].step, w);
        bool out = w->own && !c.damaged && !(c.same_run && c.same_config);
        if (!out) {
            ret->of[ret->len++] = c;
        } else if (!foreign || last_written(&c, foreign) < 0) {
            foreign = foreign ? foreign : arena_new(a, struct candidate);
            *foreign = c;
        }
    }
    ret->foreign = foreign;
    if (ret->len)
        qsort(ret->of, ret->len, sizeof(*ret->of), w->own ? newest_step : last_written);
    return 0;
}

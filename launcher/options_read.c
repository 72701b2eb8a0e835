/* options_read.c - parse option values: numbers, seconds, words, the number of ranks. */
#include "launcher/options_read.h"
#include "common/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int option_bad_word(const struct option_values *v, int id, const char *const *words, struct err *err,
                    const char *expected)
{
    struct nearest near = nearest_to(sv_from(v->text[id]));
    char hint[NEAREST_HINT_BYTES];

    nearest_offer_all(&near, words);
    return v->from_env[id]
               ? err_set(err, ERR_INVALID, "--%s=%.24s (from %s): expected %s%s", option_rows[id].name,
                         v->text[id], option_rows[id].env, expected, nearest_hint(&near, "", hint))
               : err_set(err, ERR_INVALID, "--%s=%.48s: expected %s%s", option_rows[id].name, v->text[id],
                         expected, nearest_hint(&near, "", hint));
}

int option_bad(const struct option_values *v, int id, struct err *err, const char *expected)
{
    return option_bad_word(v, id, (const char *const[]){NULL}, err, expected);
}

void option_warn(struct options *o, struct arena *a, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (o->warnings < OPTIONS_WARNINGS_MAX)
        o->warning[o->warnings++] = arena_strdup(a, text);
}

int option_int(const struct option_values *v, int id, int min, int max, int *ret, struct err *err)
{
    char expected[64];
    int64_t value;

    if (!v->text[id])
        return 0;
    snprintf(expected, sizeof(expected), "a whole number %d..%d", min, max);
    if (!sv_i64(sv_from(v->text[id]), min, max, &value))
        return option_bad(v, id, err, expected);
    *ret = (int)value;
    return 0;
}

int option_seconds(const struct option_values *v, int id, int64_t *ret_ms, struct err *err)
{
    double s;

    if (!v->text[id])
        return 0;
    if (!sv_f64(sv_from(v->text[id]), &s) || !(s >= 0 && s <= 86400))
        return option_bad(v, id, err, "seconds, 0..86400");
    *ret_ms = (int64_t)(s * 1000);
    return 0;
}

int option_word(const struct option_values *v, int id, const char *const *words, const char *expected,
                struct err *err)
{
    if (!v->text[id])
        return 0;
    for (int i = 0; words[i]; i++)
        if (strcmp(v->text[id], words[i]) == 0)
            return 0;
    return option_bad_word(v, id, words, err, expected);
}

int options_nnodes(const struct option_values *v, struct options *o, struct err *err)
{
    struct sv rest = sv_from(v->text[OPT_NNODES] ? v->text[OPT_NNODES] : "1"), part;
    int64_t min, max;

    sv_next(&rest, ':', &part);
    if (!sv_i64(sv_trim(part), 1, OPTIONS_WORLD_MAX, &min))
        return option_bad(v, OPT_NNODES, err, "N or MIN:MAX, numbers from 1");
    max = min;
    if (rest.len && !sv_i64(sv_trim(rest), min, OPTIONS_WORLD_MAX, &max))
        return option_bad(v, OPT_NNODES, err, "N or MIN:MAX, numbers from 1, MAX not below MIN");
    o->nnodes_min = (int)min;
    o->nnodes = (int)max;
    return 0;
}

int options_nproc(const struct option_values *v, const struct options_host *host, struct options *o,
                  struct err *err)
{
    const char *text = v->text[OPT_NPROC_PER_NODE];

    o->nproc = 1;
    if (!text)
        return 0;
    if (strcmp(text, "auto") == 0)
        o->nproc = host->gpus ? host->gpus : host->cpus;
    else if (strcmp(text, "cpu") == 0)
        o->nproc = host->cpus;
    else if (strcmp(text, "gpu") == 0 && !host->gpus)
        return option_bad(v, OPT_NPROC_PER_NODE, err,
                          "GPUs on this node, and 0 are visible (/dev/nvidia0, CUDA_VISIBLE_DEVICES): give "
                          "the container some (limits: "
                          "nvidia.com/gpu), or set a number, cpu or auto");
    else if (strcmp(text, "gpu") == 0)
        o->nproc = host->gpus;
    else if (strcmp(text, "xpu") == 0)
        return option_bad(
            v, OPT_NPROC_PER_NODE, err,
            "a number, auto, cpu or gpu (Intel's GPUs are not counted here: give their number)");
    else {
        int64_t n;
        if (!sv_i64(sv_from(text), 1, OPTIONS_NPROC_MAX, &n))
            return option_bad_word(v, OPT_NPROC_PER_NODE, (const char *const[]){"auto", "cpu", "gpu", NULL},
                                   err, "a number 1..1024, auto, cpu or gpu");
        o->nproc = (int)n;
    }
    o->nproc = o->nproc > OPTIONS_NPROC_MAX ? OPTIONS_NPROC_MAX : o->nproc;
    return 0;
}

/* options_read.c - parse option values: numbers, seconds, words, the number of ranks. */
#include "launcher/options_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int option_bad(const struct option_values *v, int id, struct err *err, const char *expected)
{
    const struct option_row *o = &option_rows[id];

    return v->from_env[id]
               ? err_set(err, ERR_INVALID, "--%s=%.24s (from %s): expected %s", o->name, v->text[id], o->env,
                         expected)
               : err_set(err, ERR_INVALID, "--%s=%.48s: expected %s", o->name, v->text[id], expected);
}

int option_read(const struct option_values *v, int id, void *field, struct err *err)
{
    const struct option_row *o = &option_rows[id];

    if (!v->text[id] || o->set(field, o, v->text[id], err) == 0)
        return 0;
    return v->from_env[id] ? err_wrap(err, "%s", o->env) : -1;
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

int option_int(const struct option_values *v, int id, int *ret, struct err *err)
{
    int64_t value = *ret;

    if (option_read(v, id, &value, err) < 0)
        return -1;
    *ret = (int)value;
    return 0;
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
            return option_bad(v, OPT_NPROC_PER_NODE, err, "a number 1..1024, auto, cpu or gpu");
        o->nproc = (int)n;
    }
    o->nproc = o->nproc > OPTIONS_NPROC_MAX ? OPTIONS_NPROC_MAX : o->nproc;
    return 0;
}

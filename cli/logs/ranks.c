/* ranks.c - parse a list of ranks, and which pod each of them is in. */
#include "cli/logs/ranks.h"

#include "common/sv.h"

#include <string.h>

static bool parse_range(struct sv part, int64_t *first, int64_t *last)
{
    struct sv rest = part, a, b;

    if (!sv_next(&rest, '-', &a) || !sv_i64(a, 0, RANKS_RANK_MAX, first))
        return false;
    *last = *first;
    return !sv_next(&rest, '-', &b) || (!rest.p && sv_i64(b, *first, RANKS_RANK_MAX, last));
}

int ranks_parse(const char *text, struct ranks *ret, struct err *err)
{
    struct sv rest = sv_from(text), part;

    *ret = (struct ranks){0};
    while (sv_next(&rest, ',', &part)) {
        if (ret->n == RANKS_RANGES_MAX)
            return err_set(err, ERR_INVALID, "--rank: more than %d ranges", RANKS_RANGES_MAX);
        if (!parse_range(part, &ret->ranges[ret->n].first, &ret->ranges[ret->n].last))
            return err_set(err, ERR_INVALID, "--rank: expected ranks such as 0,2,5-7, got \"%.60s\"", text);
        ret->n++;
    }
    if (!ret->n)
        return err_set(err, ERR_INVALID, "--rank: expected ranks such as 0,2,5-7");
    return 0;
}

/* Of a count that the pod decides ("gpu", "auto", "cpu") the GPUs are known, and nothing else. */
static int64_t processes(const struct trainjob_spec *spec, const struct replica_spec *r)
{
    static const char *const POD[] = {"spec", NULL};
    int64_t n = 1;
    bool some;

    if (!spec->torchrun.enabled || sv_i64(sv_from(spec->torchrun.proc_per_node), 1, RANKS_RANK_MAX, &n))
        return n;
    const cJSON *container = trainjob_training_container(json_find(r->template, POD));
    n = container ? trainjob_gpus(container, &some) : 1;
    return n > 0 && n < RANKS_RANK_MAX ? n : 1;
}

static bool wanted(const struct ranks *r, int64_t first, int64_t last)
{
    for (int i = 0; i < r->n; i++)
        if (r->ranges[i].first <= last && r->ranges[i].last >= first)
            return true;
    return r->n == 0;
}

bool ranks_have_pod(const struct ranks *r, const struct trainjob_spec *spec, const char *type, int32_t index)
{
    int64_t rank = 0;

    for (int t = 0; t < spec->n_replica_specs; t++) {
        const struct replica_spec *s = &spec->replica_specs[t];
        const int64_t n = processes(spec, s);
        if (!strcmp(s->type, type))
            return wanted(r, rank + index * n, rank + index * n + n - 1);
        rank += s->replicas * n;
    }
    return r->n == 0;
}

int ranks_count_pods(const struct ranks *r, const struct trainjob_spec *spec)
{
    int pods = 0;

    for (int t = 0; t < spec->n_replica_specs; t++)
        for (int32_t i = 0; i < spec->replica_specs[t].replicas; i++)
            pods += ranks_have_pod(r, spec, spec->replica_specs[t].type, i);
    return pods;
}

/* ranks.c - parse a list of ranks, and which pod each of them is in. */
#include "cli/ranks.h"
#include "cli/usage.h"

#include "common/contract.h"
#include "common/json.h"
#include "common/sv.h"

#include <stdio.h>
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
            return usage_wrong(err, "--rank: more than %d ranges", RANKS_RANGES_MAX);
        if (!parse_range(part, &ret->ranges[ret->n].first, &ret->ranges[ret->n].last))
            return usage_wrong(err, "--rank: expected ranks such as 0,2,5-7, got \"%.60s\"", text);
        ret->n++;
    }
    if (!ret->n)
        return usage_wrong(err, "--rank: expected ranks such as 0,2,5-7");
    return 0;
}

int64_t ranks_per_pod(const struct trainjob_spec *spec, const struct replica_spec *r)
{
    const char *procs = spec->torchrun.proc_per_node;
    const cJSON *pod = json_child(r->template, "spec");
    const cJSON *container = trainjob_training_container(pod);
    int64_t n = 1;
    bool some;

    if (!spec->torchrun.enabled || spec->debug.enabled || sv_i64(sv_from(procs), 1, RANKS_RANK_MAX, &n))
        return n;
    n = container && strcmp(procs, "cpu") != 0 ? trainjob_gpus(container, &some) : 0;
    return n <= RANKS_RANK_MAX ? n : 0;
}

/* The same, with a guess where only the pod knows. */
static int64_t processes(const struct trainjob_spec *spec, const struct replica_spec *r)
{
    const int64_t n = ranks_per_pod(spec, r);

    return n > 0 ? n : 1;
}

static bool wanted(const struct ranks *r, int64_t first, int64_t last)
{
    for (int i = 0; i < r->n; i++)
        if (r->ranges[i].first <= last && r->ranges[i].last >= first)
            return true;
    return r->n == 0;
}

static bool is_pod(const char *name, const char *job, const char *type, int32_t index)
{
    char text[2 * DECODE_NAME_BYTES + 16];
    const int own = snprintf(text, sizeof(text), "%.*s-", DECODE_NAME_BYTES, job);

    snprintf(text + own, sizeof(text) - (size_t)own, "%s-%d", type, index);
    return !name || !strcmp(name, text) || !strcmp(name, text + own);
}

bool ranks_have_pod(const struct ranks *r, const struct trainjob *job, const char *type, int32_t index)
{
    const struct trainjob_spec *spec = &job->spec;
    int64_t rank = 0;

    if (!is_pod(r->pod, job->name, type, index))
        return false;
    for (int t = 0; t < spec->n_replica_specs; t++) {
        const struct replica_spec *s = &spec->replica_specs[t];
        const int64_t n = processes(spec, s);
        if (!strcmp(s->type, type))
            return wanted(r, rank + index * n, rank + index * n + n - 1);
        rank += s->replicas * n;
    }
    return r->n == 0;
}

int ranks_count_pods(const struct ranks *r, const struct trainjob *job)
{
    const struct trainjob_spec *spec = &job->spec;
    int pods = 0;

    for (int t = 0; t < spec->n_replica_specs; t++)
        for (int32_t i = 0; i < spec->replica_specs[t].replicas; i++)
            pods += ranks_have_pod(r, job, spec->replica_specs[t].type, i);
    return pods;
}

/* In any container: others may stand in front of the training container. */
static bool has_node_order(const cJSON *pod)
{
    const cJSON *container, *v;

    cJSON_ArrayForEach(container, json_find(pod, (const char *[]){"spec", "containers", NULL}))
        cJSON_ArrayForEach(v, json_child(container, "env"))
    {
        const char *name = json_str(v, "name");
        if (name && !strcmp(name, CONTRACT_ENV_NODE_ORDER))
            return true;
    }
    return false;
}

int ranks_check_order(const struct trainjob_spec *spec, const cJSON *pod, struct err *err)
{
    const struct torchrun_config *t = &spec->torchrun;
    const bool ours = t->launcher == LAUNCHER_TORCHKEEPER;

    if (!t->enabled || spec->debug.enabled || t->rdzv_backend == RDZV_STATIC || spec->pods == 1 ||
        (ours && (!pod || has_node_order(pod))))
        return 0;
    return err_set(err, ERR_INVALID, "--rank: which pod has which ranks is not known here: %s; use --pod",
                   ours ? "a pod is from before the operator's upgrade and has no " CONTRACT_ENV_NODE_ORDER
                        : "the torchrun of the image gives them in its rendezvous");
}

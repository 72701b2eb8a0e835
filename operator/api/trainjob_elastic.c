/* trainjob_elastic.c - decode spec.elastic and apply it to the rest of the spec. */
#include "operator/api/trainjob.h"

static int check_rest(const struct json_at *at, const struct trainjob_spec *spec, struct err *err)
{
    const struct torchrun_config *t = &spec->torchrun;

    if (spec->n_replica_specs != 1)
        return json_err(at, err, "elastic jobs have exactly one replicaSpec, got %d", spec->n_replica_specs);
    if (!t->enabled || t->max_restarts < 1)
        return json_err(
            at, err,
            "elastic jobs need torchrunConfig.enabled: true and torchrunConfig.maxRestarts of at least 1");
    if (t->min_nodes)
        return json_err(
            at, err,
            "torchrunConfig.minNodes is the old way to request an elastic job: with elastic, remove it");
    if (t->rdzv_backend == RDZV_STATIC)
        return json_err(at, err, "elastic jobs need another torchrunConfig.rdzvBackend than static");
    return 0;
}

static int check_range(const struct json_at *at, const struct elastic *e, bool given, struct err *err)
{
    if (!e->min || !e->max)
        return json_err(at, err, "minReplicas and maxReplicas are both needed");
    if (e->min > e->max)
        return json_err(DECODE_AT(at, "minReplicas"), err,
                        "expected minReplicas <= maxReplicas, got %d and %d", e->min, e->max);
    if (e->expected < e->min || e->expected > e->max)
        return json_err(DECODE_AT(at, "expectedReplicas"), err,
                        "expected %d..%d (minReplicas..maxReplicas), got %d%s", e->min, e->max, e->expected,
                        given ? "" : " from replicas");
    return 0;
}

int trainjob_decode_elastic(const struct json_at *spec, struct trainjob_spec *ret, struct err *err)
{
    static const char *const KNOWN[] = {"enabled", "minReplicas", "maxReplicas", "expectedReplicas", NULL};
    struct json_at at = json_member(spec, "elastic");
    struct elastic *e = &ret->elastic;
    struct replica_spec *r = &ret->replica_specs[0];

    if (decode_members(&at, KNOWN, NULL, err) < 0 || json_get_bool(&at, "enabled", &e->enabled, err) < 0 ||
        json_get_i32(&at, "minReplicas", 1, TRAINJOB_PODS_MAX, &e->min, err) < 0 ||
        json_get_i32(&at, "maxReplicas", 1, TRAINJOB_PODS_MAX, &e->max, err) < 0 ||
        json_get_i32(&at, "expectedReplicas", 0, TRAINJOB_PODS_MAX, &e->expected, err) < 0)
        return -1;
    if (!e->enabled)
        return 0;
    bool given = e->expected > 0;
    if (!given)
        e->expected = r->replicas;
    if (check_rest(&at, ret, err) < 0 || check_range(&at, e, given, err) < 0)
        return -1;
    ret->gpus = ret->gpus / r->replicas * e->expected;
    ret->pods = r->replicas = e->expected;
    if (ret->run_policy.restart_scope == SCOPE_DEFAULT)
        ret->run_policy.restart_scope = SCOPE_REPLICA;
    return 0;
}

/* guards.c - decide whether a job gets a NetworkPolicy and a key, and build them. */
#include "operator/plan/guards.h"

#include "common/contract.h"
#include "operator/plan/desired.h"

/* The labels of the operator's pods in deploy/manager. */
#define OPERATOR                                                                                             \
    "\"podSelector\":{\"matchLabels\":{\"app.kubernetes.io/name\":\"torchkeeper\","                          \
    "\"app.kubernetes.io/component\":\"operator\"}}"

char *guards_name(struct arena *a, const struct trainjob *job)
{
    return arena_printf(a, "%s-%s", job->name, job->uid);
}

/* Policies do not apply to pods with hostNetwork, and other pods see their traffic as the node's. */
bool guards_isolate(const struct planner *p)
{
    if (!p->in->guards.isolate || p->spec->run_policy.open_network)
        return false;
    for (int i = 0; i < p->spec->n_replica_specs; i++)
        if (cJSON_IsTrue(
                json_find(p->spec->replica_specs[i].template, (const char *[]){"spec", "hostNetwork", NULL})))
            return false;
    return true;
}

/* Whether launchers of several nodes may run a rendezvous. */
static bool has_launchers(const struct planner *p)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    bool ours = t->rdzv_backend == RDZV_C10D || t->rdzv_backend == RDZV_STATIC;

    return t->enabled && ours && !p->spec->debug.enabled && (p->spec->pods > 1 || p->spec->elastic.enabled);
}

bool guards_key(const struct planner *p)
{
    bool any = false;

    if (!has_launchers(p))
        return false;
    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        if (pod && pod->keyed)
            return true;
        any = any || pod;
    }
    return !any && p->in->guards.new_key;
}

/* A label selector as JSON. The values are names and need no escapes. */
static char *selects(struct arena *a, const char *what, const char *label, const char *value)
{
    return arena_printf(a, "\"%s\":{\"matchLabels\":{\"%s\":\"%s\"}}", what, label, value);
}

static char *of_namespace(struct arena *a, const char *name)
{
    return selects(a, "namespaceSelector", "kubernetes.io/metadata.name", name);
}

/* Ingress from the job's pods to all ports; from the operator and a Prometheus to the launcher's progress
 * port; from the job's namespace to TensorBoard's port. */
static char *policy_spec(const struct planner *p)
{
    const struct plan_guards *g = &p->in->guards;
    const char *scraper = g->scraper_ns ? arena_printf(p->a, ",{%s}", of_namespace(p->a, g->scraper_ns)) : "";

    return arena_printf(p->a,
                        "{%s,\"policyTypes\":[\"Ingress\"],\"ingress\":[{\"from\":[{%s}]},"
                        "{\"from\":[{%s," OPERATOR "}%s],\"ports\":[{\"port\":%d}]},"
                        "{\"from\":[{\"podSelector\":{}}],\"ports\":[{\"port\":%d}]}]}",
                        selects(p->a, "podSelector", LABEL_ISOLATED, p->job->name),
                        selects(p->a, "podSelector", LABEL_JOB, p->job->name),
                        of_namespace(p->a, g->operator_ns), scraper, CONTRACT_PROGRESS_PORT,
                        TENSORBOARD_PORT);
}

void guards_create_policy(struct planner *p, struct action_list *list)
{
    const char *name = guards_name(p->a, p->job);

    if (!guards_isolate(p) || planner_creates(p->creates.items, p->creates.n, CHILD_POLICY))
        return;
    cJSON *o = desired_child(p, "networking.k8s.io/v1", "NetworkPolicy", name, NULL);
    cJSON_AddRawToObject(o, "spec", policy_spec(p));
    (void)planner_create(p, list, CHILD_POLICY, name, o);
}

void guards_create(struct planner *p)
{
    const char *name = guards_name(p->a, p->job);

    if (planner_has_pods(p))
        return;
    guards_create_policy(p, &p->creates);
    if (guards_key(p)) {
        cJSON *o = desired_child(p, "v1", "Secret", name, NULL);
        cJSON_AddBoolToObject(o, "immutable", true);
        cJSON_AddStringToObject(cJSON_AddObjectToObject(o, "stringData"), GUARDS_KEY, p->in->guards.new_key);
        (void)planner_create(p, &p->creates, CHILD_KEY, name, o);
    }
}

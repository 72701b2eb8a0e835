/* guards.c - decide on the NetworkPolicy and the key of a job, and build them. */
#include "operator/plan/guards.h"

#include "common/contract.h"
#include "operator/plan/desired.h"

/* As deploy/manager labels the operator's pods. */
static const char *const OPERATOR_LABELS[][2] = {{"app.kubernetes.io/name", "torchkeeper"},
                                                 {"app.kubernetes.io/component", "operator"}};

char *guards_name(struct arena *a, const struct trainjob *job)
{
    return arena_printf(a, "%s-%s", job->name, job->uid);
}

/* Pods on the node's network have no policy, and to others they come from their node's address. */
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

/* Launchers of several nodes may meet. */
static bool has_launchers(const struct planner *p)
{
    const struct torchrun_config *t = &p->spec->torchrun;
    bool ours = t->rdzv_backend == RDZV_C10D || t->rdzv_backend == RDZV_STATIC;

    return t->enabled && ours && !p->spec->debug.enabled && (p->spec->pods > 1 || p->spec->elastic.enabled);
}

bool guards_key(const struct planner *p)
{
    bool keyed = p->in->n_pods == 0 && p->in->guards.new_key;

    if (!has_launchers(p))
        return false;
    for (int i = 0; i < p->in->n_pods && !keyed; i++)
        keyed = p->in->pods[i]->keyed;
    return keyed;
}

static void add_labels(cJSON *parent, const char *selector, const char *const labels[][2], size_t n)
{
    cJSON *match = cJSON_AddObjectToObject(cJSON_AddObjectToObject(parent, selector), "matchLabels");

    for (size_t i = 0; i < n; i++)
        cJSON_AddStringToObject(match, labels[i][0], labels[i][1]);
}

static cJSON *add_item(cJSON *list)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddItemToArray(list, o);
    return o;
}

static cJSON *add_namespace(cJSON *from, const char *ns)
{
    cJSON *peer = add_item(from);

    add_labels(peer, "namespaceSelector", (const char *const[][2]){{"kubernetes.io/metadata.name", ns}}, 1);
    return peer;
}

/* The operator asks pod 0 for its progress; a Prometheus may, too. */
static void allow_progress(const struct planner *p, cJSON *ingress)
{
    const struct plan_guards *g = &p->in->guards;
    cJSON *rule = add_item(ingress);
    cJSON *from = cJSON_AddArrayToObject(rule, "from");

    add_labels(add_namespace(from, g->operator_ns), "podSelector", OPERATOR_LABELS,
               ARRAY_LEN(OPERATOR_LABELS));
    if (g->scraper_ns)
        (void)add_namespace(from, g->scraper_ns);
    cJSON *port = add_item(cJSON_AddArrayToObject(rule, "ports"));
    cJSON_AddStringToObject(port, "protocol", "TCP");
    cJSON_AddNumberToObject(port, "port", CONTRACT_PROGRESS_PORT);
}

static cJSON *policy(const struct planner *p, const char *name)
{
    const char *const ours[][2] = {{LABEL_JOB, p->job->name}, {LABEL_ISOLATED, "true"}};
    cJSON *o = desired_child(p, "networking.k8s.io/v1", "NetworkPolicy", name, NULL);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");

    add_labels(spec, "podSelector", ours, 2);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "policyTypes"), cJSON_CreateString("Ingress"));
    cJSON *ingress = cJSON_AddArrayToObject(spec, "ingress");
    add_labels(add_item(cJSON_AddArrayToObject(add_item(ingress), "from")), "podSelector", ours, 1);
    allow_progress(p, ingress);
    return o;
}

static cJSON *key(const struct planner *p, const char *name)
{
    cJSON *o = desired_child(p, "v1", "Secret", name, NULL);

    cJSON_AddStringToObject(o, "type", "Opaque");
    cJSON_AddBoolToObject(o, "immutable", true);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(o, "stringData"), GUARDS_KEY, p->in->guards.new_key);
    return o;
}

void guards_create(struct planner *p)
{
    const char *name = guards_name(p->a, p->job);

    if (p->in->n_pods > 0)
        return;
    if (guards_isolate(p))
        (void)planner_create(p, &p->creates, CHILD_POLICY, name, policy(p, name));
    if (guards_key(p))
        (void)planner_create(p, &p->creates, CHILD_KEY, name, key(p, name));
}

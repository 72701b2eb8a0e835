/* avoid.c - accuse a node, avoid it, and give up when no other node takes the pods. */
#include "operator/plan/avoid.h"

#include "operator/plan/desired.h"
#include "operator/plan/restart.h"

#include <string.h>

enum {
    EVIDENCE_MS = 24 * 3600 * 1000,
    HELD_MS = 60000,
    NODES_PER_AVOIDED = 4, /* at most a quarter of the nodes */
};

void avoid_begin(struct planner *p)
{
    struct jobstatus *st = &p->st;
    int kept = 0;

    for (int i = 0; i < st->n_avoided; i++) {
        const struct avoided_node *n = &st->avoided[i];
        if (p->spec->run_policy.no_avoiding || n->since_ms + AVOID_MS <= p->now_ms)
            continue;
        planner_requeue(p, n->since_ms + AVOID_MS);
        st->avoided[kept++] = *n;
    }
    st->n_avoided = kept;
}

/* ---- accuse */

bool avoid_is_evidence(const struct failure *f, const char *node)
{
    return f->node && strcmp(f->node, node) == 0 && exitcode_accuses_node(f->reason, f->exit_code);
}

static bool is_avoided(const struct jobstatus *st, const char *node)
{
    for (int i = 0; i < st->n_avoided; i++)
        if (strcmp(st->avoided[i].node, node) == 0)
            return true;
    return false;
}

/* With nodeName no scheduler chooses the node, and the kubelet would refuse a pod that avoids it. */
static bool is_pinned(const cJSON *pod_spec)
{
    const char *node = json_str(pod_spec, "nodeName");

    return node && node[0];
}

/* Whether pods of other nodes ended in the same way. If the node does not say so itself, a pod of another node has to
 * exist: without one, an end of the program looks the same. */
static bool is_shared(const struct planner *p, const struct judgement *j)
{
    bool alone = j->v.exit_code >= 0 && !exitcode_is_disruption(j->v.reason);

    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        const struct verdict *v = &j->verdicts[i];
        if (!pod || !pod->node[0] || strcmp(pod->node, j->slot->pod->node) == 0)
            continue;
        alone = false;
        if (v->class > VERDICT_SUCCESS && v->exit_code == j->v.exit_code &&
            strcmp(v->reason, j->v.reason) == 0)
            return true;
    }
    return alone;
}

/* Whether an earlier failure of the last day accuses the pod's node, and none another node. What led to nodes
 * in the list is settled. Two pods that end with their node are one failure of it, so the earlier one
 * was over before this pod existed. */
static bool was_accused(const struct planner *p, const struct pod *pod)
{
    bool before = false;

    for (int i = 0; i < p->st.n_failures - 1; i++) {
        const struct failure *f = &p->st.failures[i];
        if (!f->node || !avoid_is_evidence(f, f->node) || f->time_ms + EVIDENCE_MS <= p->now_ms ||
            is_avoided(&p->st, f->node))
            continue;
        if (strcmp(f->node, pod->node) != 0)
            return false;
        before |= f->attempt < p->st.attempt || f->time_ms <= pod->created_ms;
    }
    return before;
}

/* How many nodes the job may avoid. The operator does not read nodes: those of the job's own pods are certain. */
static int avoided_max(const struct planner *p)
{
    const char *seen[JOBSTATUS_AVOIDED_MAX * NODES_PER_AVOIDED];
    size_t n = 0;

    for (int i = 0; i < p->in->n_pods && n < ARRAY_LEN(seen); i++) {
        const char *node = p->in->pods[i]->node;
        size_t k = 0;
        while (k < n && strcmp(seen[k], node) != 0)
            k++;
        if (k == n && node[0])
            seen[n++] = node;
    }
    return n < 2 * NODES_PER_AVOIDED ? 1 : (int)n / NODES_PER_AVOIDED;
}

void avoid_consider(struct planner *p, const struct judgement *j)
{
    const struct pod *pod = j->slot->pod;
    struct jobstatus *st = &p->st;

    if (p->spec->run_policy.no_avoiding || !pod || !pod->node[0] ||
        is_pinned(json_find(j->slot->spec->template, (const char *[]){"spec", NULL})) ||
        !exitcode_accuses_node(j->v.reason, j->v.exit_code) || is_shared(p, j) || !was_accused(p, pod))
        return;
    int drop = st->n_avoided - avoided_max(p) + 1; /* the oldest */
    struct avoided_node *list = arena_array(p->a, JOBSTATUS_AVOIDED_MAX, struct avoided_node);
    for (int i = drop > 0 ? drop : 0, n = 0; i < st->n_avoided; i++)
        list[n++] = st->avoided[i];
    st->n_avoided -= drop > 0 ? drop : 0;
    list[st->n_avoided++] = (struct avoided_node){.node = pod->node, .since_ms = p->now_ms};
    st->avoided = list;
    planner_event(p, true, "NodeAvoided",
                  "node %s broke the job at least twice and no other node did: new pods avoid it for an hour",
                  pod->node);
}

/* ---- give up */

bool avoid_holds(const struct slot *s)
{
    const struct pod *pod = s->pod;

    return pod && pod->avoids && pod->unplaced == UNPLACED_UNSCHEDULABLE && !pod->deletion_ms;
}

/* The first pod that waits, and when its wait is over; NULL: none waits. */
static const struct slot *held(struct planner *p, int64_t *ret_due_ms)
{
    const struct opt_i64 *deadline = &p->spec->run_policy.start_deadline_s;
    int64_t wait_ms = deadline->set && deadline->v < HELD_MS / 1000 ? deadline->v * 1000 : HELD_MS;
    const struct slot *first = NULL;

    for (int i = 0; i < p->n_slots; i++) {
        if (!avoid_holds(&p->slots[i]))
            continue;
        p->seen.held_ms = planner_first_seen(p, p->in->seen.held_ms, p->now_ms);
        int64_t due = planner_first_seen(p, p->seen.held_ms, p->slots[i].pod->created_ms) + wait_ms;
        if (!first || due < *ret_due_ms) {
            first = &p->slots[i];
            *ret_due_ms = due;
        }
    }
    return first;
}

void avoid_give_up(struct planner *p)
{
    int64_t due;
    const struct slot *s = held(p, &due);

    if (!s || p->st.attempt == COUNT_MAX)
        return;
    if (due > p->now_ms) {
        planner_requeue(p, due);
        return;
    }
    for (int i = 0; i < p->st.n_avoided; i++)
        p->st.avoided[i] = (struct avoided_node){p->st.avoided[i].node, p->now_ms, .dropped = true};
    planner_event(p, true, "NodeAllowed",
                  "pod %s found no node without those that broke the job: new pods may use all nodes",
                  s->name);
    if (p->st.ran_attempt != p->st.attempt && !planner_gang_runs(p)) {
        restart_next_attempt(p);
        return;
    }
    for (int i = 0; i < p->n_slots; i++)
        if (avoid_holds(&p->slots[i]))
            restart_replace_pod(p, &p->slots[i]);
    planner_fill_slots(p);
}

/* ---- the pod */

/* {key: metadata.name, operator: NotIn, values: [node]}: a field takes one value. */
static cJSON *not_in(const char *node)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "key", "metadata.name");
    cJSON_AddStringToObject(o, "operator", "NotIn");
    cJSON_AddItemToObject(o, "values", cJSON_CreateStringArray(&node, 1));
    return o;
}

/* The member, created if it is absent or null. NULL: of another type, which the API server refuses. */
static cJSON *member_of(cJSON *parent, const char *key)
{
    cJSON *m = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (m && !cJSON_IsNull(m))
        return cJSON_IsObject(m) ? m : NULL;
    m = cJSON_CreateObject();
    desired_set(parent, key, m);
    return m;
}

static int members(const cJSON *term, const char *key)
{
    return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(term, key));
}

/* A node has to fit one term, so each gets the fields. A term without requirements fits no node, and stays so. */
static void add_to_terms(cJSON *terms, const cJSON *fields)
{
    cJSON *term;
    const cJSON *f;

    cJSON_ArrayForEach(term, terms)
    {
        cJSON *list = cJSON_GetObjectItemCaseSensitive(term, "matchFields");
        if (members(term, "matchFields") + members(term, "matchExpressions") == 0)
            continue;
        if (!cJSON_IsArray(list)) {
            list = cJSON_CreateArray();
            desired_set(term, "matchFields", list);
        }
        cJSON_ArrayForEach(f, fields) cJSON_AddItemToArray(list, cJSON_Duplicate(f, true));
    }
}

static void require(cJSON *spec, cJSON *fields)
{
    static const char REQUIRED[] = "requiredDuringSchedulingIgnoredDuringExecution";
    cJSON *affinity = member_of(spec, "affinity");
    cJSON *of_nodes = affinity ? member_of(affinity, "nodeAffinity") : NULL;
    cJSON *required = of_nodes ? member_of(of_nodes, REQUIRED) : NULL;

    if (required && !required->child) {
        cJSON *term = cJSON_CreateObject();
        cJSON_AddItemToObject(term, "matchFields", cJSON_Duplicate(fields, true));
        cJSON_AddItemToArray(cJSON_AddArrayToObject(required, "nodeSelectorTerms"), term);
    } else if (required) {
        add_to_terms(cJSON_GetObjectItemCaseSensitive(required, "nodeSelectorTerms"), fields);
    }
}

void avoid_apply(const struct planner *p, cJSON *pod)
{
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(pod, "metadata");
    cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(pod, "spec");
    cleanup_json cJSON *fields = cJSON_CreateArray();
    const char *names = "";

    for (int i = 0; i < p->st.n_avoided && !is_pinned(spec); i++) {
        const struct avoided_node *n = &p->st.avoided[i];
        if (n->dropped)
            continue;
        names = arena_printf(p->a, "%s%s%s", names, names[0] ? "," : "", n->node);
        cJSON_AddItemToArray(fields, not_in(n->node));
    }
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, ANNOTATION_AVOIDED_NODES); /* the template's */
    if (!names[0])
        return;
    cJSON_AddStringToObject(annotations, ANNOTATION_AVOIDED_NODES, names);
    require(spec, fields);
}

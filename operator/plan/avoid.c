/* avoid.c - accuse a node, avoid it, and give up when no other node takes the pods. */
#include "operator/plan/avoid.h"

#include "operator/plan/desired.h"
#include "operator/plan/restart.h"
#include "operator/plan/status.h"

#include <string.h>

enum { EVIDENCE_MS = 24 * 3600 * 1000, HELD_MS = 60000, NODES_PER_AVOIDED = 4 };

void avoid_begin(struct planner *p)
{
    const struct jobstatus *old = &p->job->status;
    struct jobstatus *st = &p->st;

    st->avoided = arena_array(p->a, JOBSTATUS_AVOIDED_MAX + 1, struct avoided_node); /* with a new one */
    st->n_avoided = 0;
    for (int i = 0; i < old->n_avoided && !p->spec->run_policy.no_avoiding; i++) {
        struct avoided_node n = old->avoided[i];
        n.since_ms = status_time(p, n.since_ms);
        if (n.since_ms + AVOID_MS <= p->now_ms)
            continue;
        planner_requeue(p, n.since_ms + AVOID_MS);
        st->avoided[st->n_avoided++] = n;
    }
}

/* In a template: no scheduler chooses the node, and its kubelet would refuse a pod that avoids it. */
static const char *const NODE_NAME[] = {"spec", "nodeName", NULL};

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
    int nodes = 0;

    for (int i = 0; i < p->in->n_pods; i++) {
        int k = 0;
        while (strcmp(p->in->pods[k]->node, p->in->pods[i]->node) != 0)
            k++;
        nodes += k == i && p->in->pods[i]->node[0];
    }
    int max = nodes / NODES_PER_AVOIDED;
    return max < 1 ? 1 : max < JOBSTATUS_AVOIDED_MAX ? max : JOBSTATUS_AVOIDED_MAX;
}

void avoid_consider(struct planner *p, const struct judgement *j)
{
    const struct pod *pod = j->slot->pod;
    struct jobstatus *st = &p->st;

    if (p->spec->run_policy.no_avoiding || !pod || !pod->node[0] ||
        json_find(j->slot->spec->template, NODE_NAME) ||
        !exitcode_accuses_node(j->v.reason, j->v.exit_code) || is_shared(p, j) || !was_accused(p, pod))
        return;
    const int max = avoided_max(p), oldest = st->n_avoided < max ? 0 : st->n_avoided - max + 1;
    st->n_avoided -= oldest;
    memmove(st->avoided, st->avoided + oldest, (size_t)st->n_avoided * sizeof(*st->avoided));
    st->avoided[st->n_avoided++] = (struct avoided_node){.node = pod->node, .since_ms = p->now_ms};
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

/* When the first pod that waits has waited long enough; INT64_MAX: none waits. */
static int64_t held_until(struct planner *p)
{
    const struct opt_i64 *deadline = &p->spec->run_policy.start_deadline_s;
    bool sooner = deadline->set && deadline->v > 0 && deadline->v < HELD_MS / 1000; /* 0: no deadline */
    int64_t wait_ms = sooner ? deadline->v * 1000 : HELD_MS;
    int64_t first = INT64_MAX;

    for (int i = 0; i < p->n_slots; i++) {
        if (!avoid_holds(&p->slots[i]))
            continue;
        p->out->seen.held_ms = planner_first_seen(p, p->in->seen.held_ms, p->now_ms);
        int64_t due = planner_first_seen(p, p->out->seen.held_ms, p->slots[i].pod->created_ms) + wait_ms;
        first = due < first ? due : first;
    }
    return first;
}

void avoid_give_up(struct planner *p)
{
    int64_t due = held_until(p);

    if (due > p->now_ms && due < INT64_MAX)
        planner_requeue(p, due);
    if (due > p->now_ms || p->st.attempt == COUNT_MAX)
        return;
    for (int i = 0; i < p->st.n_avoided; i++)
        p->st.avoided[i] = (struct avoided_node){p->st.avoided[i].node, p->now_ms, .dropped = true};
    planner_event(p, true, "NodeAllowed",
                  "no node took the pods beside those that broke the job: new pods may use all nodes");
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

/* A node has to fit one of the user's terms, so each gets the requirement. A user's term without any fits no node,
 * and stays so. */
static void leave_out(cJSON *spec, const char *node)
{
    cJSON *of_nodes = desired_object(desired_object(spec, "affinity"), "nodeAffinity");
    cJSON *required = desired_object(of_nodes, "requiredDuringSchedulingIgnoredDuringExecution");
    bool ours = !required->child;
    cJSON *term;

    if (ours)
        cJSON_AddItemToArray(cJSON_AddArrayToObject(required, "nodeSelectorTerms"), cJSON_CreateObject());
    cJSON_ArrayForEach(term, cJSON_GetObjectItemCaseSensitive(required, "nodeSelectorTerms"))
    {
        bool empty = !ours;
        const cJSON *list;
        cJSON_ArrayForEach(list, term) empty &= !list->child;
        if (empty)
            continue;
        cJSON_AddItemToArray(desired_array(term, "matchFields"), not_in(node));
    }
}

void avoid_apply(const struct planner *p, cJSON *pod)
{
    cJSON *annotations = desired_object(desired_object(pod, "metadata"), "annotations");
    const char *names = "";

    for (int i = 0; i < p->st.n_avoided && !json_find(pod, NODE_NAME); i++) {
        const struct avoided_node *n = &p->st.avoided[i];
        if (n->dropped)
            continue;
        names = arena_printf(p->a, "%s%s%s", names, names[0] ? "," : "", n->node);
        leave_out(desired_object(pod, "spec"), n->node);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, ANNOTATION_AVOIDED_NODES); /* the template's */
    if (names[0])
        cJSON_AddStringToObject(annotations, ANNOTATION_AVOIDED_NODES, names);
}

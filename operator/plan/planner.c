/* planner.c - add actions, events and conditions to a plan under construction. */
#include "operator/plan/planner.h"

#include "operator/plan/desired.h"

#include <string.h>

struct action *planner_add(struct planner *p, struct action_list *list, enum action_kind kind)
{
    if (list->n == list->cap) {
        int cap = list->cap ? list->cap * 2 : 8;
        struct action *items = arena_array(p->a, (size_t)cap, struct action);
        if (list->n)
            memcpy(items, list->items, (size_t)list->n * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    struct action *act = &list->items[list->n++];
    act->kind = kind;
    return act;
}

void planner_event_in(struct planner *p, struct action_list *list, bool warning, const char *reason,
                      const char *fmt, ...)
{
    struct action *act = planner_add(p, list, ACTION_EVENT);
    va_list ap;

    va_start(ap, fmt);
    act->warning = warning;
    act->reason = arena_strdup(p->a, reason); /* it may point into a pod */
    act->message = arena_vprintf(p->a, fmt, ap);
    va_end(ap);
}

bool planner_creates(const struct action *items, int n, enum child_kind child)
{
    for (int i = 0; i < n; i++)
        if (items[i].kind == ACTION_CREATE && items[i].child == child)
            return true;
    return false;
}

struct action *planner_create(struct planner *p, struct action_list *list, enum child_kind child,
                              const char *name, cJSON *body)
{
    struct action *act = planner_add(p, list, ACTION_CREATE);

    act->child = child;
    act->name = name;
    act->body = json_print(body, p->a);
    cJSON_Delete(body);
    return act;
}

struct action *planner_on(struct planner *p, struct action_list *list, enum action_kind kind,
                          enum child_kind child, const char *name, const char *uid)
{
    struct action *act = planner_add(p, list, kind);

    act->child = child;
    act->name = arena_strdup(p->a, name);
    act->uid = arena_strdup(p->a, uid);
    return act;
}

struct action *planner_delete_pod(struct planner *p, const struct pod *pod)
{
    return pod->deletion_ms ? NULL
                            : planner_on(p, &p->deletes, ACTION_DELETE, CHILD_POD, pod->name, pod->uid);
}

int64_t planner_first_seen(const struct planner *p, int64_t seen_ms, int64_t ms)
{
    seen_ms = seen_ms && seen_ms < p->now_ms ? seen_ms : p->now_ms;
    return ms < seen_ms ? ms : seen_ms;
}

void planner_requeue(struct planner *p, int64_t at_ms)
{
    if (!p->out->requeue_ms || at_ms < p->out->requeue_ms)
        p->out->requeue_ms = at_ms;
}

bool planner_is_due(struct planner *p, int64_t at_ms)
{
    if (at_ms > p->now_ms)
        planner_requeue(p, at_ms);
    return at_ms <= p->now_ms;
}

void planner_condition(struct planner *p, enum condition_type type, bool on, const char *reason,
                       const char *message)
{
    struct condition *c = &p->st.conditions[type];
    enum condition_state state = on ? COND_TRUE : COND_FALSE;

    if (c->state != state)
        c->transition_ms = p->now_ms;
    c->state = state;
    c->reason = reason;
    c->message = message;
    c->observed_generation = p->job->generation;
}

void planner_reason(struct planner *p, const char *reason, const char *subject, const char *message)
{
    if (p->st.reason)
        return;
    p->st.reason = subject ? arena_printf(p->a, "%s %s", reason, subject) : reason;
    p->reason_message = message;
}

bool planner_has_other_template(const struct planner *p)
{
    for (int i = 0; i < p->n_slots; i++) {
        const struct pod *pod = p->slots[i].pod;
        if (pod && pod->hash[0] && strcmp(pod->hash, p->spec->hash) != 0)
            return true;
    }
    return false;
}

bool planner_is_ours(const struct trainjob *job)
{
    const char *who = job->spec.run_policy.managed_by;

    return !who || strcmp(who, TRAINJOB_MANAGED_BY) == 0;
}

bool planner_is_remote(const struct trainjob *job)
{
    const char *who = job->spec.run_policy.managed_by;

    return who && strcmp(who, TRAINJOB_MULTIKUEUE) == 0;
}

bool planner_has_pods(const struct planner *p)
{
    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].pod)
            return true;
    return false;
}

int64_t planner_oldest_ms(const struct planner *p)
{
    int64_t ms = INT64_MAX;

    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].pod && p->slots[i].pod->created_ms < ms)
            ms = p->slots[i].pod->created_ms;
    return ms;
}

struct task_status *planner_task(const struct planner *p, const char *type)
{
    for (int t = 0; t < p->st.n_tasks; t++)
        if (p->st.tasks[t].type && strcmp(p->st.tasks[t].type, type) == 0)
            return &p->st.tasks[t];
    return NULL;
}

/* The slot of the pod: its labels select a slot, and its name, which cannot change, must match. */
static struct slot *slot_of(struct planner *p, const struct pod *pod)
{
    int first = 0;

    for (int t = 0; t < p->spec->n_replica_specs; t++) {
        const struct replica_spec *spec = &p->spec->replica_specs[t];
        if (strcmp(spec->type, pod->type) == 0 && pod->index >= 0 && pod->index < spec->replicas &&
            strcmp(p->slots[first + pod->index].name, pod->name) == 0)
            return &p->slots[first + pod->index];
        first += spec->replicas;
    }
    for (int s = 0; s < p->n_slots; s++)
        if (strcmp(p->slots[s].name, pod->name) == 0)
            return &p->slots[s];
    return NULL;
}

static void place_pods(struct planner *p)
{
    p->n_old_pods = 0;
    for (int i = 0; i < p->in->n_pods; i++) {
        const struct pod *pod = p->in->pods[i];
        if (pod->attempt < p->st.attempt) {
            p->n_old_pods++;
            continue;
        }
        struct slot *s = slot_of(p, pod);
        if (!s)
            continue;
        if (s->seen && pod->restart < s->seen->restarts)
            s->leaving = true;
        else
            s->pod = pod;
    }
}

void planner_fill_slots(struct planner *p)
{
    int n = 0;

    p->slots = arena_array(p->a, (size_t)p->spec->pods, struct slot);
    for (int t = 0; t < p->spec->n_replica_specs; t++) {
        const struct replica_spec *spec = &p->spec->replica_specs[t];
        const struct task_status *task = planner_task(p, spec->type);
        for (int i = 0; i < spec->replicas; i++) {
            struct slot *s = &p->slots[n];
            *s = (struct slot){.spec = spec, .type = t, .index = i, .order = n};
            s->name = desired_pod_name(p->a, p->job->name, spec->type, i);
            s->seen = task && i < task->n_replicas ? &task->replicas[i] : NULL;
            n++;
        }
    }
    p->n_slots = n;
    place_pods(p);
}

struct waiting planner_waiting(const struct planner *p, const struct slot *s)
{
    struct pod pod = *s->pod;

    if (pod.crashed && p->spec->run_policy.no_last_words)
        pod.init.message = "";
    struct waiting w = waiting_of(&pod, s->spec->template, p->now_ms, p->a);
    w.container = NULL;
    return w;
}

bool planner_gang_runs(const struct planner *p)
{
    int need = p->spec->elastic.enabled ? p->spec->elastic.min : p->n_slots;
    int running = 0;
    int done = 0;

    for (int i = 0; i < p->n_slots; i++) {
        running += p->slots[i].pod && pod_is_running(p->slots[i].pod);
        done += planner_slot_done(&p->slots[i]);
    }
    return running > 0 && running + done >= need;
}

bool planner_slot_done(const struct slot *s)
{
    if (s->pod)
        return s->pod->training.state == CONTAINER_TERMINATED ? s->pod->training.exit_code == 0
                                                              : s->pod->phase == POD_SUCCEEDED;
    return s->seen && s->seen->uid && s->seen->state && strcmp(s->seen->state, "Terminated") == 0 &&
           s->seen->exit_code == 0;
}

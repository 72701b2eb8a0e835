/* fuzz_plan.c - for any job, status and pods, the plan may be carried out, and planning again gives the same plan.
 * The input: {"job": ..., "pods": [...], "now": ms, "lost": true,
 * "progress": what its launcher answered, "written": ms}. */
#include "fuzz.h"

#include "operator/plan/plan.h"

#include <string.h>

enum { PODS_MAX = 16 };

struct state {
    struct trainjob *job;
    struct pod *pods[PODS_MAX];
    struct plan_progress progress;
    struct plan_input in;
};

/* As the snapshot of a cache has it: the job's own, and neither name nor UID twice. */
static bool belongs(const struct state *s, const struct pod *pod)
{
    if (strcmp(pod->owner_uid, s->job->uid) != 0 || strcmp(pod->ns, s->job->ns) != 0)
        return false;
    for (int i = 0; i < s->in.n_pods; i++)
        if (strcmp(s->pods[i]->name, pod->name) == 0 || strcmp(s->pods[i]->uid, pod->uid) == 0)
            return false;
    return true;
}

/* As an answer of the job's own, whatever attempt it is of. */
static void read_progress(struct plan_progress *p, const cJSON *doc)
{
    cleanup_arena struct arena a = {0};
    const cJSON *answer = json_child(doc, "progress");
    const char *uid = json_str(answer, "job");
    int64_t attempt = json_i64(answer, "attempt", 0);

    p->attempt = attempt >= 0 && attempt <= COUNT_MAX ? (int32_t)attempt : 0;
    p->written_ms = INT64_C(1767225600000) + json_i64(doc, "written", 0) % INT64_C(1000000000000);
    p->answered = answer && jobprogress_answer(sv_from(json_print(answer, &a)), uid ? uid : "", p->attempt,
                                               &p->answer) == JOBPROGRESS_OK;
}

static void read_state(struct state *s, const cJSON *doc)
{
    const cJSON *m;
    struct err err;

    cJSON_ArrayForEach(m, json_child(doc, "pods"))
    {
        struct pod *pod = s->in.n_pods < PODS_MAX ? pod_decode(m, NULL, &err) : NULL;
        if (pod && belongs(s, pod))
            s->pods[s->in.n_pods++] = pod;
        else
            free(pod);
    }
    s->in.job = s->job;
    s->in.status_first = cJSON_IsTrue(json_child(doc, "lost"));
    s->in.pods = (const struct pod *const *)s->pods;
    s->in.now_ms = INT64_C(1767225600000) + json_i64(doc, "now", 0) % INT64_C(1000000000000);
    read_progress(&s->progress, doc);
    s->in.progress = &s->progress;
    s->in.tensorboard_image = "tb";
    s->in.launcher_image = "launcher";
    s->in.guards = (struct plan_guards){.isolate = true, .operator_ns = "ops", .new_key = "k"};
}

static const struct pod *pod_of_uid(const struct state *s, const char *uid)
{
    for (int i = 0; i < s->in.n_pods; i++)
        if (strcmp(s->pods[i]->uid, uid) == 0)
            return s->pods[i];
    return NULL;
}

static void check_create(const struct state *s, const struct plan *plan, int at)
{
    const struct action *act = &plan->actions[at];
    struct err err;

    cleanup_json cJSON *body = json_parse(act->body, strlen(act->body), &err);
    MUST(body && strcmp(json_str(json_child(body, "metadata"), "name"), act->name) == 0);
    MUST(strcmp(api_controller_uid(json_child(body, "metadata")), s->job->uid) == 0);
    MUST(!s->job->spec_error);
    for (int i = 0; i < at; i++) {
        const struct action *other = &plan->actions[i];
        MUST(other->kind != ACTION_CREATE || other->child != act->child ||
             strcmp(other->name, act->name) != 0);
    }
    for (int i = 0; act->child == CHILD_POD && i < s->in.n_pods; i++)
        MUST(strcmp(s->pods[i]->name, act->name) != 0);
}

static void check_action(const struct state *s, const struct plan *plan, int at)
{
    const struct action *act = &plan->actions[at];
    struct err err;

    switch (act->kind) {
    case ACTION_STATUS: {
        cleanup_json cJSON *body = json_parse(act->body, strlen(act->body), &err);
        MUST(at == 0 && json_child(body, "status"));
        MUST(strcmp(json_str(json_child(body, "metadata"), "resourceVersion"), s->job->resource_version) ==
             0);
        break;
    }
    case ACTION_EVENT:
        MUST(act->reason[0] && act->message[0]);
        break;
    case ACTION_DELETE:
        MUST(act->child != CHILD_POD || pod_of_uid(s, act->uid));
        for (int i = 0; i < at; i++)
            MUST(plan->actions[i].kind != ACTION_DELETE || strcmp(plan->actions[i].uid, act->uid) != 0);
        break;
    case ACTION_CREATE:
        check_create(s, plan, at);
        break;
    case ACTION_PATCH:
        MUST(act->body && strstr(act->body, "\"uid\""));
        break;
    case ACTION_APPLY: /* on Workloads, of which there are none */
    case ACTION_EDIT:
        MUST(false);
    }
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_again(const struct state *s, const struct plan *plan)
{
    cleanup_arena struct arena a = {0};
    struct plan again;

    plan_trainjob(&s->in, &a, &again);
    MUST(again.n_actions == plan->n_actions && again.requeue_ms == plan->requeue_ms);
    for (int i = 0; i < plan->n_actions; i++) {
        const struct action *x = &plan->actions[i];
        const struct action *y = &again.actions[i];
        MUST(x->kind == y->kind && x->child == y->child && x->force == y->force);
        MUST(same(x->name, y->name) && same(x->uid, y->uid) && same(x->body, y->body));
        MUST(same(x->reason, y->reason) && same(x->message, y->message));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct state s = {0};
    struct plan plan;
    struct err err;
    cleanup_json cJSON *doc = size < 100000 ? json_parse((const char *)data, size, &err) : NULL;

    s.job = trainjob_decode(cJSON_Duplicate(json_child(doc, "job"), true), &err);
    if (!s.job)
        return 0;
    read_state(&s, doc);
    plan_trainjob(&s.in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++)
        check_action(&s, &plan, i);
    MUST(!s.job->deleting || plan.n_actions == 0);
    /* A timer that is due is followed, not set again: else the pass would come back for ever. */
    MUST(!plan.requeue_ms || plan.requeue_ms > s.in.now_ms || plan.n_actions > 0);
    check_again(&s, &plan);
    for (int i = 0; i < s.in.n_pods; i++)
        free(s.pods[i]);
    trainjob_free(s.job);
    return 0;
}

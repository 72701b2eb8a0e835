/* test_random.c - random lives of jobs: whatever happens, what reliability rests on holds, and the job gets to an end.
 *
 * The same dice in each run; PLAN_RANDOM_SEED=n begins with other ones and PLAN_RANDOM_RUNS=n throws them more often.
 * A failure names its seed: PLAN_RANDOM_SEED=<seed> PLAN_RANDOM_RUNS=1 shows it alone.
 */
#include "common/clock.h"
#include "common/contract.h"
#include "simdice.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 60, RUNS = 150, ROUNDS_TO_SETTLE = 12, ROUNDS_TO_END = 200 };

static int avoided, held; /* pods that avoid nodes, and those of them that found no other node */

static int64_t number(const cJSON *o, const char *key)
{
    return json_i64(o, key, 0);
}

static bool is(const cJSON *o, const char *key, const char *word)
{
    const char *s = json_str(o, key);

    return s && strcmp(s, word) == 0;
}

static bool is_over(const cJSON *status)
{
    return is(status, "phase", "Succeeded") || is(status, "phase", "Failed");
}

#define EXPECT(s, what)                                                                                      \
    do {                                                                                                     \
        if (!(what))                                                                                         \
            fail_in(s, #what);                                                                               \
    } while (0)

static void fail_in(const struct sim *s, const char *what)
{
    struct arena a = {0};

    fprintf(stderr, "%s\npods %s\n", sim_print(s, &a),
            json_print(s->pods, &a)); /* print_error cuts at 1 KiB */
    arena_release(&a);
    fail_msg("PLAN_RANDOM_SEED=%llu: %s", (unsigned long long)s->seed, what);
}

/* ---- what each plan keeps to */

static const cJSON *pod_in(const struct sim_view *view, const char *name)
{
    const cJSON *pod;

    cJSON_ArrayForEach(pod, view->pods)
    {
        if (is(sim_get(pod, "metadata"), "name", name))
            return pod;
    }
    return NULL;
}

static bool is_deleted(const struct sim_pass *p, const char *uid)
{
    for (int i = 0; i < p->plan.n_actions; i++)
        if (p->plan.actions[i].kind == ACTION_DELETE && strcmp(p->plan.actions[i].uid, uid) == 0)
            return true;
    return false;
}

static bool is_create(const struct sim_pass *p, int i, enum child_kind child)
{
    return i < p->plan.n_actions && p->plan.actions[i].kind == ACTION_CREATE &&
           p->plan.actions[i].child == child;
}

static bool creates_before(const struct sim_pass *p, int end, enum child_kind child)
{
    for (int i = 0; i < end; i++)
        if (is_create(p, i, child))
            return true;
    return false;
}

static void check_create(struct sim *s, const struct sim_view *view, const struct sim_pass *p, int i,
                         int64_t attempt)
{
    static const char *const RESTART[] = {"metadata", "labels", LABEL_RESTART, NULL};
    static const char *const HASH[] = {"metadata", "labels", LABEL_TEMPLATE_HASH, NULL};
    const struct action *act = &p->plan.actions[i];
    struct err err;

    if (act->child == CHILD_DEPLOYMENT || strstr(act->name, "-tensorboard") ||
        (act->child == CHILD_POLICY && is_create(p, i + 1, CHILD_DEPLOYMENT)))
        return;
    EXPECT(s, !is_over(sim_get(view->job, "status")));
    if (act->child != CHILD_POD)
        return;
    cleanup_json cJSON *body = json_parse(act->body, strlen(act->body), &err);
    const cJSON *label = json_find(body, (const char *[]){"metadata", "labels", LABEL_ATTEMPT, NULL});
    EXPECT(s, atoi(label->valuestring) == attempt); /* written before it is made */
    EXPECT(s, !pod_in(view, act->name));            /* one pod in a place */
    for (int k = 0; k < i; k++)
        EXPECT(s,
               p->plan.actions[k].kind != ACTION_CREATE || strcmp(p->plan.actions[k].name, act->name) != 0);
    const char *hash = json_find(body, HASH)->valuestring;
    bool keyed = strstr(act->body, CONTRACT_ENV_JOB_KEY) != NULL;
    EXPECT(s, p->in.n_pods > 0 || creates_before(p, i, CHILD_POLICY));
    EXPECT(s, p->in.n_pods > 0 || !keyed || creates_before(p, i, CHILD_KEY));
    for (int k = 0; k < p->in.n_pods; k++) {
        bool leaves = p->in.pods[k]->deletion_ms || is_deleted(p, p->in.pods[k]->uid);
        EXPECT(s, p->in.pods[k]->attempt == attempt); /* one gang at a time, of one template */
        EXPECT(s, leaves || strcmp(p->in.pods[k]->hash, hash) == 0);
        EXPECT(s, leaves || p->in.pods[k]->keyed == keyed); /* all have the key, or none */
    }
    struct sim_life *life = sim_life_of(s, act->name);
    int64_t restart = atoi(json_find(body, RESTART)->valuestring);
    bool counted_out = attempt == COUNT_MAX || restart == COUNT_MAX;
    EXPECT(s, life->attempt < attempt || life->restart < restart || life->repeats || counted_out);
}

/* The log of a training that has ended stays with its pod, unless its node looks at no deadline. */
static void check_log_kept(struct sim *s, const struct sim_view *view, const struct sim_pass *p,
                           const struct action *act)
{
    if (!is_over(sim_get(view->job, "status")) || s->status_was_lost ||
        p->job->spec.run_policy.cleanup_policy != CLEANUP_UNFINISHED)
        return;
    for (int i = 0; i < p->in.n_pods; i++) {
        const struct pod *pod = p->in.pods[i];
        int64_t late_ms = s->now_ms - pod->created_ms - pod->deadline_s * INT64_C(1000);
        bool kept = strcmp(pod->uid, act->uid) == 0 && pod->attempt == p->job->status.attempt &&
                    pod->training.state == CONTAINER_TERMINATED && !act->force;
        EXPECT(s, !kept || (pod->working[0] && pod->deadline_s && late_ms >= 600000));
    }
}

static void check_actions(struct sim *s, const struct sim_view *view, const struct sim_pass *p)
{
    int64_t attempt = p->job->status.attempt;
    struct err err;

    for (int i = 0; i < p->plan.n_actions; i++) {
        const struct action *act = &p->plan.actions[i];
        if (act->kind == ACTION_STATUS) {
            EXPECT(s, i == 0);
            cleanup_json cJSON *body = json_parse(act->body, strlen(act->body), &err);
            attempt = json_i64(sim_get(body, "status"), "attempt", attempt);
        }
        if (act->kind == ACTION_CREATE)
            check_create(s, view, p, i, attempt);
        if (act->kind == ACTION_DELETE && act->child == CHILD_POD)
            check_log_kept(s, view, p, act);
        for (int k = 0; k < i && act->kind == ACTION_DELETE; k++)
            EXPECT(s,
                   p->plan.actions[k].kind != ACTION_DELETE || strcmp(p->plan.actions[k].uid, act->uid) != 0);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Planning changes nothing and depends on nothing else. */
static void check_again(struct sim *s, const struct sim_view *view, const struct sim_pass *p)
{
    struct sim_pass *again = sim_plan(s, *view);

    EXPECT(s, again->plan.n_actions == p->plan.n_actions);
    EXPECT(s, again->plan.requeue_ms == p->plan.requeue_ms);
    for (int i = 0; i < p->plan.n_actions; i++) {
        const struct action *a = &p->plan.actions[i];
        const struct action *b = &again->plan.actions[i];
        EXPECT(s, a->kind == b->kind && a->child == b->child && a->force == b->force);
        EXPECT(s, same_text(a->name, b->name) && same_text(a->uid, b->uid) && same_text(a->body, b->body));
        EXPECT(s, same_text(a->reason, b->reason) && same_text(a->message, b->message));
    }
    sim_pass_free(again);
}

/* ---- what each written status keeps to */

static int64_t counted(const cJSON *status)
{
    return number(status, "backoffCount") + number(status, "disruptionCount") +
           number(status, "admissionCount");
}

static bool condition(const cJSON *status, const char *type)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, sim_get(status, "conditions"))
    {
        if (is(c, "type", type))
            return is(c, "status", "True");
    }
    return false;
}

/* From here on the pod's place is taken: its next pod needs a higher attempt or restart, but for those that Always
 * brings back. */
static void note_lives(struct sim *s, const cJSON *status)
{
    const cJSON *task;
    const cJSON *replica;

    cJSON_ArrayForEach(task, sim_get(status, "tasks"))
    {
        cJSON_ArrayForEach(replica, sim_get(task, "replicas"))
        {
            if (!json_str(replica, "uid") || !json_str(replica, "name"))
                continue;
            struct sim_life *life = sim_life_of(s, json_str(replica, "name"));
            life->attempt = number(status, "attempt");
            life->restart = number(replica, "restarts");
            life->repeats = sim_repeats(s, json_str(task, "type"));
        }
    }
}

static void check_status(struct sim *s, const cJSON *old, const cJSON *new)
{
    static const char *const NEVER_FALL[] = {"attempt",        "backoffCount", "disruptionCount",
                                             "admissionCount", "resumeCount",  "restarts"};
    static const char *const SCOPE[] = {"runPolicy", "restartScope", NULL};
    const cJSON *spec = sim_get(s->job, "spec");
    const cJSON *scope = json_find(spec, SCOPE);
    int64_t more = counted(new) - counted(old);
    bool gang = !scope && !sim_get(spec, "elastic");

    EXPECT(s, !is_over(new) || sim_get(new, "completionTime"));
    EXPECT(s, condition(new, "Completed") == is(new, "phase", "Succeeded"));
    EXPECT(s, condition(new, "Failed") == is(new, "phase", "Failed"));
    EXPECT(s, number(new, "restarts") >= counted(new) || number(new, "restarts") == COUNT_MAX);
    EXPECT(s, cJSON_GetArraySize(sim_get(new, "failures")) <= JOBSTATUS_FAILURES_MAX);
    if (!old)
        return; /* new, or lost: rebuilt */
    for (size_t i = 0; i < ARRAY_LEN(NEVER_FALL); i++)
        EXPECT(s, number(new, NEVER_FALL[i]) >= number(old, NEVER_FALL[i]));
    if (is_over(old)) {
        EXPECT(s, same_text(json_str(old, "phase"), json_str(new, "phase")));
        EXPECT(s, more == 0 && number(new, "attempt") == number(old, "attempt"));
    }
    EXPECT(s, number(new, "attempt") <= number(old, "attempt") + 1);
    EXPECT(s, number(new, "backoffCount") == number(old, "backoffCount") ||
                  number(new, "backoffCount") <= json_i64(sim_get(spec, "runPolicy"), "backoffLimit", 3));
    if (gang) {
        EXPECT(s, more <= 1); /* one attempt counts once */
        EXPECT(s, more == 0 || number(new, "attempt") == number(old, "attempt") + 1);
    }
}

/* The metrics count what the status has. */
static void check_told(struct sim *s, const struct sim_pass *p, const cJSON *old)
{
    const cJSON *new = sim_status(s);
    bool written = p->plan.n_actions > 0 && p->plan.actions[0].kind == ACTION_STATUS && s->job;

    if (!written || s->status_was_lost)
        return;
    EXPECT(s, p->plan.started == !json_str(old, "phase"));
    EXPECT(s, p->plan.succeeded == (is(new, "phase", "Succeeded") && !is(old, "phase", "Succeeded")));
    EXPECT(s, p->plan.failed == (is(new, "phase", "Failed") && !is(old, "phase", "Failed")));
    EXPECT(s, p->plan.restarted == (counted(new) > counted(old) && !is_over(new)));
}

/* ---- a life */

/* One pass; `limit` ends it early, like the operator's death. Whether it wanted to do anything. */
static bool pass(struct sim *s, struct sim_view view, int limit)
{
    struct sim_pass *p = sim_plan(s, view);

    bool fresh = view.job == s->job && view.pods == s->pods;
    if (fresh)
        check_actions(s, &view, p);
    check_again(s, &view, p);
    /* A timer that is due is followed, not set again: else the pass would come back for ever. */
    EXPECT(s, !p->plan.requeue_ms || p->plan.requeue_ms > s->now_ms || p->plan.n_actions > 0);
    cleanup_json cJSON *old = cJSON_Duplicate(sim_status(s), true);
    sim_apply(s, p, limit);
    if (s->job && sim_status(s) && !cJSON_Compare(old, sim_status(s), true)) {
        check_status(s, s->status_was_lost ? NULL : old, sim_status(s));
        note_lives(s, sim_status(s));
        if (limit == INT32_MAX)
            check_told(s, p, old);
        s->status_was_lost = false;
    }
    bool acted = p->plan.n_actions > 0;
    s->due_ms = p->plan.requeue_ms;
    sim_pass_free(p);
    return acted;
}

/* Nodes that broke the job are avoided while others take its pods, and for a minute otherwise. */
static void check_held(struct sim *s)
{
    static const char *const AVOIDED[] = {"metadata", "annotations", ANNOTATION_AVOIDED_NODES, NULL};
    static const char *const REASON[] = {"reason", NULL};
    const cJSON *pod;

    cJSON_ArrayForEach(pod, s->pods)
    {
        const cJSON *scheduled = cJSON_GetArrayItem(sim_get(sim_get(pod, "status"), "conditions"), 0);
        int64_t created_ms = 0;
        if (!json_find(pod, AVOIDED))
            continue;
        avoided++;
        if (!json_find(scheduled, REASON) || json_str(sim_get(pod, "spec"), "nodeName"))
            continue;
        held++;
        EXPECT(s, clock_parse_rfc3339(json_str(sim_get(pod, "metadata"), "creationTimestamp"), &created_ms));
        EXPECT(s, s->now_ms < created_ms + 61000);
    }
}

/* Nobody else does anything: soon there is nothing left to do. */
static void settle(struct sim *s)
{
    int n = 0;

    while (s->job && pass(s, sim_now(s), INT32_MAX))
        EXPECT(s, ++n < ROUNDS_TO_SETTLE);
    if (s->job && !is_over(sim_status(s)) && !condition(sim_status(s), "InvalidSpec"))
        check_held(s);
}

/* The clock moves to the operator's own next timer. */
static void wait_for_timer(struct sim *s)
{
    if (s->due_ms > s->now_ms)
        s->now_ms = s->due_ms;
}

static void live_a_moment(struct sim *s)
{
    static const int64_t PAUSES_MS[] = {0, 1, 999, 1000, 5000, 31000, 120000, 900000};
    cleanup_json cJSON *old_job = cJSON_Duplicate(s->job, true);
    cleanup_json cJSON *old_pods = cJSON_Duplicate(s->pods, true);

    sim_kubelets(s, true);
    if (sim_one_in(s, 4))
        sim_people(s);
    if (sim_one_in(s, 3))
        wait_for_timer(s);
    else
        s->now_ms += PAUSES_MS[sim_pick(s, (int)ARRAY_LEN(PAUSES_MS))];
    struct sim_view view = sim_now(s);
    if (sim_one_in(s, 8))
        view.job = old_job;
    if (sim_one_in(s, 8))
        view.pods = old_pods;
    (void)pass(s, view, sim_one_in(s, 6) ? sim_pick(s, 4) : INT32_MAX);
    if (s->job && sim_one_in(s, 5))
        settle(s);
}

/* The status says that it runs, how many of its pods do, and none of them failed. */
static bool all_well(const struct sim *s)
{
    const cJSON *status = sim_status(s);
    const cJSON *pod;
    int running = 0;

    cJSON_ArrayForEach(pod, s->pods)
    {
        static const char *const PATH[] = {"terminated", "exitCode", NULL};
        const char *phase = json_str(sim_get(pod, "status"), "phase");
        const cJSON *c = cJSON_GetArrayItem(sim_get(sim_get(pod, "status"), "containerStatuses"), 0);
        const cJSON *code = json_find(sim_get(c, "state"), PATH);
        /* A training that ended well did, whatever became of its pod. */
        if (code ? code->valueint != 0
                 : !phase || (strcmp(phase, "Running") != 0 && strcmp(phase, "Succeeded") != 0))
            return false;
        running += !code && strcmp(phase, "Running") == 0;
    }
    return is(status, "phase", "Running") && atoi(json_str(status, "ready")) == running;
}

/* With sound nodes and nobody in the way the job runs, whatever it went through. */
static void get_going(struct sim *s)
{
    sim_people_rest(s);
    for (int n = 0; s->job; n++) {
        EXPECT(s, n < ROUNDS_TO_END);
        settle(s);
        if (!s->job || is_over(sim_status(s)) || all_well(s))
            return;
        sim_kubelets(s, false);
        wait_for_timer(s);
    }
}

static void check_leftovers(struct sim *s)
{
    static const char *const PATH[] = {"runPolicy", "cleanUpPolicy", NULL};
    const char *policy = json_find(sim_get(s->job, "spec"), PATH)->valuestring;
    const cJSON *pod;

    cJSON_ArrayForEach(pod, s->pods)
    {
        const cJSON *status = sim_get(pod, "status");
        EXPECT(s, strcmp(policy, "All") != 0);
        EXPECT(s, strcmp(policy, "None") == 0 || is_over(status));
    }
}

/* Its master ends well; then nothing is left to do. */
static void get_done(struct sim *s)
{
    if (s->job && !is_over(sim_status(s)))
        sim_end_master(s);
    for (int n = 0; s->job; n++) {
        EXPECT(s, n < ROUNDS_TO_END);
        settle(s);
        if (!s->job)
            return;
        EXPECT(s, is_over(sim_status(s)));
        if (!s->due_ms && cJSON_GetArraySize(s->pods) == s->n_seen)
            break;
        s->n_seen = cJSON_GetArraySize(s->pods);
        sim_kubelets(s, false);
        wait_for_timer(s);
    }
    check_leftovers(s);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_lives(void **state)
{
    uint64_t first = from_environment("PLAN_RANDOM_SEED", 1);
    uint64_t runs = from_environment("PLAN_RANDOM_RUNS", RUNS);
    struct sim s;

    (void)state;
    for (uint64_t seed = first; seed < first + runs; seed++) {
        sim_init(&s, seed);
        for (int i = 0; s.job && i < STEPS; i++)
            live_a_moment(&s);
        if (s.job)
            get_going(&s);
        if (s.job)
            get_done(&s);
        sim_free(&s);
    }
    assert_true(runs < RUNS || (avoided > 0 && held > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

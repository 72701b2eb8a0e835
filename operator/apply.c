/* apply.c - the requests of one pass: one after the other, but for pods. */
#include "operator/apply.h"

#include "operator/existing.h"
#include "operator/request.h"

#include <string.h>

/* Creates of pods at a time: as many as there are connections. */
enum { STEPS_MAX = 8 };

/* One action under way, with the request that it waits for. */
struct step {
    struct apply *ap;
    const struct action *act; /* NULL: free */
    struct kube_call *call;
};

struct apply {
    const struct transport *t;
    struct recorder *recorder;
    struct apply_target target;
    const struct plan *plan;
    struct arena *a;
    void (*done)(void *ctx, const struct apply_result *result);
    void *ctx;
    int at; /* the next action */
    struct step steps[STEPS_MAX];
    int n_steps;  /* under way */
    bool failed;  /* nothing is begun any more */
    bool running; /* inside run: what ends there is seen there */
    struct apply_result result;
};

static void run(struct apply *ap);

static void finish(struct apply *ap)
{
    ap->result.ok = !ap->failed;
    ap->done(ap->ctx, &ap->result);
    free(ap);
}

static void end_step(struct step *s)
{
    struct apply *ap = s->ap;

    *s = (struct step){.ap = ap};
    ap->n_steps--;
    if (!ap->running)
        run(ap);
}

/* True: it is the first failure, the one that the pass ends with. */
static bool fail(struct step *s, const struct err *err, const struct kube_status *status)
{
    struct apply *ap = s->ap;
    bool first = !ap->failed;

    ap->failed = true;
    if (first) {
        ap->result.err = *err;
        ap->result.retry_after_ms = status ? status->retry_after_ms : -1;
    }
    return first;
}

static void fail_step(struct step *s, const struct err *err, const struct kube_status *status)
{
    (void)fail(s, err, status);
    end_step(s);
}

static void expect(struct step *s, const char *uid, bool present)
{
    struct apply_result *r = &s->ap->result;
    struct expectation *e = &r->expected[r->n_expected++];

    e->child = s->act->child;
    e->present = present;
    e->removed = !present && s->act->force;
    snprintf(e->uid, sizeof(e->uid), "%s", uid ? uid : "");
}

/* A create that the API server will not have: not a failure of ours, but the job's problem. */
static void refuse(struct step *s, enum problem_kind kind, const struct err *err)
{
    struct apply_result *r = &s->ap->result;

    if (fail(s, err, NULL)) {
        snprintf(r->problem_name, sizeof(r->problem_name), "%s", s->act->name);
        snprintf(r->problem_message, sizeof(r->problem_message), "%s", err->msg);
        r->problem = (struct plan_problem){.kind = kind, .child = s->act->child, .name = r->problem_name};
        r->problem.message = r->problem_message;
    }
    end_step(s);
}

/* Nothing went wrong, but the pass cannot go on before something is gone. */
static void wait_for(struct step *s)
{
    struct err err;

    err_set(&err, ERR_CONFLICT, "%s has to go first", s->act->name);
    if (fail(s, &err, NULL))
        s->ap->result.wait = true;
    end_step(s);
}

static void on_older_deleted(void *ctx, struct kube_reply *reply)
{
    struct step *s = ctx;

    s->call = NULL;
    if (reply->err && reply->err->kind != ERR_NOT_FOUND && reply->err->kind != ERR_CONFLICT)
        fail_step(s, reply->err, &reply->status);
    else
        wait_for(s);
}

/* A pod of an earlier attempt that the cache does not show, since someone took its labels away. */
static void delete_older(struct step *s, const char *uid)
{
    struct kube_request r = {.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = s->ap->target.ns};
    struct err err;

    r.name = s->act->name;
    r.body = kube_delete_options(s->ap->a, uid, NULL, "Background", -1);
    s->call = kube_call_start(s->ap->t, &r, on_older_deleted, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

/* The name is taken: by what we wanted, by something of ours that has to go first, or by someone else. */
static void on_existing(void *ctx, struct kube_reply *reply)
{
    struct step *s = ctx;
    const char *uid = json_str(json_find(reply->object, (const char *[]){"metadata", NULL}), "uid");
    struct err err;

    s->call = NULL;
    if (reply->err) {
        if (reply->err->kind == ERR_NOT_FOUND)
            wait_for(s);
        else
            fail_step(s, reply->err, &reply->status);
        return;
    }
    switch (existing_judge(s->act, reply->object, s->ap->target.uid)) {
    case EXISTING_WANTED:
        expect(s, uid, true);
        end_step(s);
        return;
    case EXISTING_OLDER:
        delete_older(s, uid ? uid : "");
        return;
    case EXISTING_LEAVING:
    case EXISTING_NEWER:
        wait_for(s);
        return;
    case EXISTING_FOREIGN:
        err_set(&err, ERR_CONFLICT, "%s %s exists and belongs to someone else",
                request_resource(s->act->child)->kind, s->act->name);
        refuse(s, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
}

static void look_at_existing(struct step *s)
{
    struct kube_request r = {
        .verb = KUBE_GET, .resource = request_resource(s->act->child), .ns = s->ap->target.ns};
    struct err err;

    r.name = s->act->name;
    s->call = kube_call_start(s->ap->t, &r, on_existing, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

static void on_created(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});

    if (!reply->err) {
        s->ap->result.pods_created += s->act->child == CHILD_POD;
        expect(s, json_str(meta, "uid"), true);
        end_step(s);
    } else if (reply->status.reason == KUBE_REASON_ALREADY_EXISTS) {
        look_at_existing(s);
    } else if (reply->status.code == 403) {
        refuse(s, PROBLEM_REFUSED, reply->err);
    } else if (reply->status.code == 422 || reply->status.code == 400) {
        refuse(s, PROBLEM_INVALID, reply->err);
    } else {
        fail_step(s, reply->err, &reply->status);
    }
}

/* 404: it is gone. 409: another object has the name now, and that one is not meant. With a child the cache has to
 * confirm that; nothing would bring a job back to try again. A delete of one version may also have met a newer one. */
static void on_deleted(struct step *s, struct kube_reply *reply)
{
    bool other =
        reply->err && reply->err->kind == ERR_CONFLICT && s->act->child != CHILD_JOB && !s->act->version;
    bool gone = reply->err && (reply->err->kind == ERR_NOT_FOUND || other);

    if (gone && s->act->child == CHILD_JOB)
        s->ap->result.job_missing = true; /* to be looked into: no later event tells when that was not so */
    if (reply->err && (!gone || s->act->child == CHILD_JOB)) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    s->ap->result.pods_deleted += s->act->child == CHILD_POD && !s->act->force && !gone;
    if (s->act->child != CHILD_JOB)
        expect(s, s->act->uid, false);
    end_step(s);
}

static void on_status(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");

    if (reply->err) {
        s->ap->result.job_missing = reply->err->kind == ERR_NOT_FOUND;
        fail_step(s, reply->err, &reply->status);
        return;
    }
    s->ap->result.status_written = true;
    snprintf(s->ap->result.status_version, sizeof(s->ap->result.status_version), "%s",
             version ? version : "");
    end_step(s);
}

static void on_checked(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *uid = json_str(meta, "uid");

    if (reply->err && reply->err->kind != ERR_NOT_FOUND) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    if (uid && strcmp(uid, s->act->uid) == 0 && existing_is_known(reply->object, s->ap->target.uid))
        s->ap->result.checked_stale = true;
    else
        s->ap->result.gone_uids[s->ap->result.n_gone_uids++] = s->act->uid;
    end_step(s);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct step *s = ctx;

    s->call = NULL;
    switch (s->act->kind) {
    case ACTION_STATUS:
        on_status(s, reply);
        return;
    case ACTION_CREATE:
        on_created(s, reply);
        return;
    case ACTION_DELETE:
        on_deleted(s, reply);
        return;
    case ACTION_CHECK:
        on_checked(s, reply);
        return;
    case ACTION_PATCH:
        if (reply->err && reply->err->kind != ERR_NOT_FOUND)
            fail_step(s, reply->err, &reply->status);
        else
            end_step(s);
        return;
    case ACTION_EVENT:
        return;
    }
}

static void record(struct apply *ap, const struct action *act)
{
    struct recorder_object o = {.api_version = TRAINJOB_API_VERSION,
                                .kind = TRAINJOB_KIND,
                                .ns = ap->target.ns,
                                .name = ap->target.job,
                                .uid = ap->target.uid};

    recorder_event(ap->recorder, &o, act->warning, act->reason, "%s", act->message);
}

static void begin(struct apply *ap, const struct action *act)
{
    struct kube_request r = request_of(act, ap->target.ns, ap->a);
    struct step *s = ap->steps;
    struct err err;

    while (s->act)
        s++;
    *s = (struct step){.ap = ap, .act = act};
    ap->n_steps++;
    s->call = kube_call_start(ap->t, &r, on_reply, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

static bool creates_pod(const struct action *act)
{
    return act->kind == ACTION_CREATE && act->child == CHILD_POD;
}

/* Alone, but for pods, which may be created beside each other: first one, and one more at a time with each that went well,
 * so that a quota that is used up is asked once. */
static bool may_begin(const struct apply *ap, const struct action *act)
{
    if (ap->n_steps == 0)
        return true;
    return creates_pod(act) && creates_pod(act - 1) && ap->n_steps < STEPS_MAX &&
           ap->n_steps <= ap->result.pods_created;
}

/* From the next action on, as far as one may go. */
static void run(struct apply *ap)
{
    ap->running = true;
    while (!ap->failed && ap->at < ap->plan->n_actions && may_begin(ap, &ap->plan->actions[ap->at])) {
        const struct action *act = &ap->plan->actions[ap->at++];
        if (act->kind == ACTION_EVENT)
            record(ap, act);
        else
            begin(ap, act);
    }
    ap->running = false;
    if (ap->n_steps == 0)
        finish(ap);
}

struct apply *apply_new(const struct transport *t, struct recorder *r, const struct apply_target *target,
                        const struct plan *plan, struct arena *a,
                        void (*done)(void *ctx, const struct apply_result *result), void *ctx)
{
    struct apply *ap = calloc(1, sizeof(*ap));

    if (!ap)
        abort();
    *ap = (struct apply){
        .t = t, .recorder = r, .target = *target, .plan = plan, .a = a, .done = done, .ctx = ctx};
    for (int i = 0; i < STEPS_MAX; i++)
        ap->steps[i].ap = ap;
    ap->result.retry_after_ms = -1;
    ap->result.expected = arena_array(a, (size_t)plan->n_actions + 1, struct expectation);
    ap->result.gone_uids = arena_array(a, (size_t)plan->n_actions + 1, const char *);
    return ap;
}

void apply_run(struct apply *ap)
{
    run(ap);
}

void apply_cancel(struct apply *ap)
{
    if (!ap)
        return;
    for (int i = 0; i < STEPS_MAX; i++)
        kube_call_cancel(ap->steps[i].call);
    free(ap);
}

/* apply.c - the sequence of requests of one pass. */
#include "operator/apply.h"

#include "operator/existing.h"

#include <string.h>

const struct kube_resource TRAINJOBS = {TRAINJOB_GROUP, TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND,
                                        false};

struct apply {
    const struct transport *t;
    struct recorder *recorder;
    struct apply_target target;
    const struct plan *plan;
    struct arena *a;
    void (*done)(void *ctx, const struct apply_result *result);
    void *ctx;
    int at; /* the action under way */
    struct kube_call *call;
    struct apply_result result;
};

static void run(struct apply *ap);

static const struct kube_resource *resource_of(enum child_kind child)
{
    switch (child) {
    case CHILD_POD:
        return &KUBE_PODS;
    case CHILD_SERVICE:
        return &KUBE_SERVICES;
    case CHILD_DEPLOYMENT:
        return &KUBE_DEPLOYMENTS;
    case CHILD_JOB:
        break;
    }
    return &TRAINJOBS;
}

static const struct action *current(const struct apply *ap)
{
    return &ap->plan->actions[ap->at];
}

static void finish(struct apply *ap, bool ok)
{
    ap->result.ok = ok;
    ap->done(ap->ctx, &ap->result);
    free(ap);
}

static void fail(struct apply *ap, const struct err *err, const struct kube_status *status)
{
    ap->result.err = *err;
    ap->result.retry_after_ms = status ? status->retry_after_ms : -1;
    finish(ap, false);
}

static void next(struct apply *ap)
{
    ap->at++;
    run(ap);
}

static void expect(struct apply *ap, const char *uid, bool present)
{
    struct expectation *e = &ap->result.expected[ap->result.n_expected++];

    e->child = current(ap)->child;
    e->present = present;
    e->removed = !present && current(ap)->force;
    snprintf(e->uid, sizeof(e->uid), "%s", uid ? uid : "");
}

/* A create that the API server will not have: not a failure of ours, but the job's problem. */
static void refuse(struct apply *ap, enum problem_kind kind, const struct err *err)
{
    struct apply_result *r = &ap->result;

    snprintf(r->problem_name, sizeof(r->problem_name), "%s", current(ap)->name);
    snprintf(r->problem_message, sizeof(r->problem_message), "%s", err->msg);
    r->problem = (struct plan_problem){.kind = kind, .child = current(ap)->child, .name = r->problem_name};
    r->problem.message = r->problem_message;
    fail(ap, err, NULL);
}

/* Nothing went wrong, but the pass cannot go on before something is gone. */
static void wait_for(struct apply *ap)
{
    struct err err;

    err_set(&err, ERR_CONFLICT, "%s has to go first", current(ap)->name);
    ap->result.wait = true;
    fail(ap, &err, NULL);
}

static void on_older_deleted(void *ctx, struct kube_reply *reply)
{
    struct apply *ap = ctx;

    ap->call = NULL;
    if (reply->err && reply->err->kind != ERR_NOT_FOUND && reply->err->kind != ERR_CONFLICT)
        fail(ap, reply->err, &reply->status);
    else
        wait_for(ap);
}

/* A pod of an earlier attempt that the cache does not show, since someone took its labels away. */
static void delete_older(struct apply *ap, const char *uid)
{
    struct kube_request r = {.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = ap->target.ns};
    struct err err;

    r.name = current(ap)->name;
    r.body = kube_delete_options(ap->a, uid, NULL, "Background", -1);
    ap->call = kube_call_start(ap->t, &r, on_older_deleted, ap, &err);
    if (!ap->call)
        fail(ap, &err, NULL);
}

/* The name is taken: by what we wanted, by something of ours that has to go first, or by someone else. */
static void on_existing(void *ctx, struct kube_reply *reply)
{
    struct apply *ap = ctx;
    const char *uid = json_str(json_find(reply->object, (const char *[]){"metadata", NULL}), "uid");
    struct err err;

    ap->call = NULL;
    if (reply->err) {
        if (reply->err->kind == ERR_NOT_FOUND)
            wait_for(ap);
        else
            fail(ap, reply->err, &reply->status);
        return;
    }
    switch (existing_judge(current(ap), reply->object, ap->target.uid)) {
    case EXISTING_WANTED:
        expect(ap, uid, true);
        next(ap);
        return;
    case EXISTING_OLDER:
        delete_older(ap, uid ? uid : "");
        return;
    case EXISTING_LEAVING:
    case EXISTING_NEWER:
        wait_for(ap);
        return;
    case EXISTING_FOREIGN:
        err_set(&err, ERR_CONFLICT, "%s %s exists and belongs to someone else",
                resource_of(current(ap)->child)->kind, current(ap)->name);
        refuse(ap, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
}

static void look_at_existing(struct apply *ap)
{
    struct kube_request r = {
        .verb = KUBE_GET, .resource = resource_of(current(ap)->child), .ns = ap->target.ns};
    struct err err;

    r.name = current(ap)->name;
    ap->call = kube_call_start(ap->t, &r, on_existing, ap, &err);
    if (!ap->call)
        fail(ap, &err, NULL);
}

static void on_created(struct apply *ap, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});

    if (!reply->err) {
        ap->result.pods_created += current(ap)->child == CHILD_POD;
        expect(ap, json_str(meta, "uid"), true);
        next(ap);
    } else if (reply->status.reason == KUBE_REASON_ALREADY_EXISTS) {
        look_at_existing(ap);
    } else if (reply->status.code == 403) {
        refuse(ap, PROBLEM_REFUSED, reply->err);
    } else if (reply->status.code == 422 || reply->status.code == 400) {
        refuse(ap, PROBLEM_INVALID, reply->err);
    } else {
        fail(ap, reply->err, &reply->status);
    }
}

/* 404: it is gone. 409: another object has the name now, and that one is not meant. */
static void on_deleted(struct apply *ap, struct kube_reply *reply)
{
    bool gone = reply->err && (reply->err->kind == ERR_NOT_FOUND || reply->err->kind == ERR_CONFLICT);

    if (reply->err && !gone) {
        fail(ap, reply->err, &reply->status);
        return;
    }
    ap->result.pods_deleted += current(ap)->child == CHILD_POD && !current(ap)->force && !gone;
    if (current(ap)->child != CHILD_JOB)
        expect(ap, current(ap)->uid, false);
    next(ap);
}

static void on_status(struct apply *ap, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");

    if (reply->err) {
        fail(ap, reply->err, &reply->status);
        return;
    }
    ap->result.status_written = true;
    snprintf(ap->result.status_version, sizeof(ap->result.status_version), "%s", version ? version : "");
    next(ap);
}

static void on_checked(struct apply *ap, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *uid = json_str(meta, "uid");

    if (reply->err && reply->err->kind != ERR_NOT_FOUND) {
        fail(ap, reply->err, &reply->status);
        return;
    }
    if (uid && strcmp(uid, current(ap)->uid) == 0 && existing_is_labelled(reply->object))
        ap->result.checked_stale = true;
    else
        ap->result.gone_uids[ap->result.n_gone_uids++] = current(ap)->uid;
    next(ap);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct apply *ap = ctx;

    ap->call = NULL;
    switch (current(ap)->kind) {
    case ACTION_STATUS:
        on_status(ap, reply);
        return;
    case ACTION_CREATE:
        on_created(ap, reply);
        return;
    case ACTION_DELETE:
        on_deleted(ap, reply);
        return;
    case ACTION_CHECK:
        on_checked(ap, reply);
        return;
    case ACTION_PATCH:
        if (reply->err && reply->err->kind != ERR_NOT_FOUND)
            fail(ap, reply->err, &reply->status);
        else
            next(ap);
        return;
    case ACTION_EVENT:
        return;
    }
}

static struct kube_request request_of(struct apply *ap, const struct action *act)
{
    static const enum kube_verb VERBS[] = {
        [ACTION_STATUS] = KUBE_PATCH,  [ACTION_CHECK] = KUBE_GET,   [ACTION_DELETE] = KUBE_DELETE,
        [ACTION_CREATE] = KUBE_CREATE, [ACTION_PATCH] = KUBE_PATCH, [ACTION_EVENT] = KUBE_GET,
    };
    struct kube_request r = {
        .verb = VERBS[act->kind], .resource = resource_of(act->child), .ns = ap->target.ns};

    r.name = act->kind == ACTION_CREATE ? NULL : act->name;
    r.subresource = act->kind == ACTION_STATUS ? "status" : NULL;
    if (act->body)
        r.body = sv_from(act->body);
    if (act->kind == ACTION_CREATE || act->kind == ACTION_PATCH || act->kind == ACTION_STATUS)
        r.field_manager = "ptj-operator";
    if (act->kind == ACTION_DELETE)
        r.body = kube_delete_options(ap->a, act->uid, NULL, "Background", act->force ? 0 : -1);
    return r;
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

/* From the current action on, until one needs the API server. */
static void run(struct apply *ap)
{
    struct err err;

    for (; ap->at < ap->plan->n_actions; ap->at++) {
        const struct action *act = current(ap);
        if (act->kind == ACTION_EVENT) {
            record(ap, act);
            continue;
        }
        struct kube_request r = request_of(ap, act);
        ap->call = kube_call_start(ap->t, &r, on_reply, ap, &err);
        if (!ap->call)
            fail(ap, &err, NULL);
        return;
    }
    finish(ap, true);
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
    if (ap->call)
        kube_call_cancel(ap->call);
    free(ap);
}

/* step.c - carry out one action: send its request, and turn the answer into an expectation, a problem or a failure. */
#include "operator/step.h"

#include "operator/existing.h"
#include "operator/refusal.h"
#include "operator/request.h"

#include <stdio.h>
#include <string.h>

/* However long a server, or an admission webhook through it, asks us to wait: a corrected job is not held up for longer. */
enum { RETRY_AFTER_MAX_MS = 60000 };

static void end_step(struct step *s)
{
    const struct step_pass *pass = s->pass;

    *s = (struct step){0};
    pass->ended(pass->ctx);
}

/* The first failure is the one that the pass ends with; later ones change nothing. */
static bool note_failure(struct step *s, enum problem_kind kind, const struct err *err,
                         int64_t retry_after_ms)
{
    struct apply_result *r = s->pass->result;

    if (!r->ok)
        return false;
    r->ok = false;
    r->err = *err;
    r->retry_after_ms = retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS;
    if (kind != PROBLEM_NONE)
        r->problem = (struct plan_problem){.kind = kind,
                                           .child = s->act->child,
                                           .name = s->act->name,
                                           .message = arena_strdup(s->pass->a, err->msg)};
    return true;
}

/* Whatever a create came to grief on is told in the job's status when it lasts. */
static void fail_step(struct step *s, const struct err *err, const struct kube_status *status)
{
    bool create = s->act->kind == ACTION_CREATE;
    struct err told = *err;

    if (create)
        err_wrap(&told, "creating %s %s", request_resource(s->act->child)->kind, s->act->name);
    (void)note_failure(s, create ? PROBLEM_FAILED : PROBLEM_NONE, &told,
                       status ? status->retry_after_ms : -1);
    end_step(s);
}

/* The cache will show the child of this action with this UID, or that it is gone. */
static void expect(struct step *s, const char *uid, bool present)
{
    struct apply_result *r = s->pass->result;
    struct expectation *e = &r->expected[r->n_expected++];

    e->child = s->act->child;
    e->present = present;
    e->removed = !present && s->act->force;
    snprintf(e->uid, sizeof(e->uid), "%s", uid ? uid : "");
}

/* A create that the API server will not have: not a failure of ours, but the job's problem. */
static void refuse(struct step *s, enum problem_kind kind, const struct err *err)
{
    (void)note_failure(s, kind, err, -1);
    end_step(s);
}

/* Nothing went wrong, but the pass cannot go on before something is gone. */
static void wait_for(struct step *s)
{
    struct err err;

    err_set(
        &err, ERR_CONFLICT,
        "%s %s is being deleted, or of an earlier job or attempt, and does not go: look at its finalizers",
        request_resource(s->act->child)->kind, s->act->name);
    if (note_failure(s, PROBLEM_NAME_CONFLICT, &err, -1))
        s->pass->result->wait = true;
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

/* One more request of this step: false, and the step has ended, if nothing is to be sent any more. */
static void send(struct step *s, const struct kube_request *r,
                 void (*done)(void *ctx, struct kube_reply *reply))
{
    struct err err;

    if (!apply_may_go_on(s->pass->target)) {
        end_step(s);
        return;
    }
    s->call = kube_call_start(s->pass->t, r, done, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

static void delete_pod(struct step *s, const char *uid, const char *version,
                       void (*done)(void *ctx, struct kube_reply *reply))
{
    struct kube_request r = {.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = s->pass->target->ns};

    r.name = s->act->name;
    r.body = kube_delete_options(s->pass->a, uid, version, "Background", -1);
    send(s, &r, done);
}

/* By its names alone: ours is what was wanted, and the cache will show what is wrong with it. */
static void on_unreadable(struct step *s, const struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->names, (const char *[]){"metadata", NULL});
    struct err err = *reply->unreadable;

    err_wrap(&err, "%s %s exists and cannot be read", request_resource(s->act->child)->kind, s->act->name);
    if (strcmp(api_controller_uid(meta), s->pass->target->uid) != 0) {
        refuse(s, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
    expect(s, json_str(meta, "uid"), true);
    end_step(s);
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
    if (reply->unreadable) {
        on_unreadable(s, reply);
        return;
    }
    switch (existing_judge(s->act, reply->object, s->pass->target->job, s->pass->target->uid)) {
    case EXISTING_WANTED:
        expect(s, uid, true);
        end_step(s);
        return;
    case EXISTING_OLDER: /* the cache does not show it, since someone took its labels away */
        delete_pod(s, uid ? uid : "", NULL, on_older_deleted);
        return;
    case EXISTING_LEAVING:
    case EXISTING_NEWER:
        wait_for(s);
        return;
    case EXISTING_FOREIGN:
        err_set(&err, ERR_CONFLICT, "%s %s exists and belongs to another owner",
                request_resource(s->act->child)->kind, s->act->name);
        refuse(s, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
}

static void look_at_existing(struct step *s)
{
    struct kube_request r = {
        .verb = KUBE_GET, .resource = request_resource(s->act->child), .ns = s->pass->target->ns};

    r.name = s->act->name;
    send(s, &r, on_existing);
}

static void on_reply(void *ctx, struct kube_reply *reply);

static void begin_request(struct step *s)
{
    struct kube_request r = request_of(s->act, s->pass->target->ns, s->pass->a);

    if (s->lenient)
        r.field_validation = "Ignore";
    send(s, &r, on_reply);
}

/* A job that ran goes on without a field that the server does not know, as it was begun; any other has it corrected first. */
static void on_refused(struct step *s, const struct err *err)
{
    struct apply_result *result = s->pass->result;
    struct err told = *err;
    enum refusal by = refusal_of(request_resource(s->act->child)->kind, err->msg);

    if (by == REFUSAL_FIELD && s->act->child == CHILD_POD)
        refusal_put_paths(&told, s->act->body);
    if (by == REFUSAL_FIELD && s->act->lenient && !s->lenient) {
        s->lenient = true;
        if (!result->ignored)
            result->ignored = arena_printf(
                s->pass->a, "the pods are made without what the API server does not know: %s", told.msg);
        begin_request(s);
        return;
    }
    refuse(s, by == REFUSAL_POLICY ? PROBLEM_REFUSED : PROBLEM_INVALID, &told);
}

static bool is_refusal(const struct kube_reply *reply)
{
    return reply->err &&
           (reply->status.code == 400 || reply->status.code == 403 || reply->status.code == 422);
}

static void on_created(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->names, (const char *[]){"metadata", NULL});

    if (!reply->err) {
        s->pass->result->pods_created += s->act->child == CHILD_POD;
        expect(s, json_str(meta, "uid"), true);
        end_step(s);
    } else if (reply->status.reason == KUBE_REASON_ALREADY_EXISTS) {
        look_at_existing(s);
    } else if (is_refusal(reply)) {
        on_refused(s, reply->err);
    } else {
        fail_step(s, reply->err, &reply->status);
    }
}

/* 404: it is gone. 409: another object has the name now, and that one is not meant. With a child the cache has to
 * confirm that; nothing would bring a job back to try again. A delete of one version may also have met a newer one. */
static void on_deleted(struct step *s, struct kube_reply *reply)
{
    struct apply_result *r = s->pass->result;
    bool other =
        reply->err && reply->err->kind == ERR_CONFLICT && s->act->child != CHILD_JOB && !s->act->version;
    bool gone = reply->err && (reply->err->kind == ERR_NOT_FOUND || other);

    if (gone && s->act->child == CHILD_JOB)
        r->read_first = true; /* to be looked into: no later event tells when that was not so */
    if (reply->err && (!gone || s->act->child == CHILD_JOB)) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    r->pods_deleted += s->act->child == CHILD_POD && !s->act->force && !gone;
    if (s->act->child != CHILD_JOB)
        expect(s, s->act->uid, false);
    end_step(s);
}

static void on_status(struct step *s, struct kube_reply *reply)
{
    struct apply_result *r = s->pass->result;
    const cJSON *meta = json_find(reply->names, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");

    if (reply->err) {
        r->read_first = reply->err->kind == ERR_NOT_FOUND;
        r->status_refused = reply->err->kind == ERR_CONFLICT;
        fail_step(s, reply->err, &reply->status);
        return;
    }
    r->status_written = true;
    r->read_first = version == NULL; /* the answer was cut before it: what the cache has may be older */
    snprintf(r->status_version, sizeof(r->status_version), "%s", version ? version : "");
    end_step(s);
}

static void on_checked(struct step *s, struct kube_reply *reply)
{
    struct apply_result *r = s->pass->result;
    const cJSON *meta = json_find(reply->names, (const char *[]){"metadata", NULL});
    const char *uid = json_str(meta, "uid");
    bool other = uid && strcmp(uid, s->act->uid) != 0;

    if (reply->err && reply->err->kind != ERR_NOT_FOUND) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    if (reply->unreadable && !other) { /* it is there; without a UID nobody can say which one */
        struct err err = *reply->unreadable;
        err_wrap(&err, "pod %s cannot be read", s->act->name);
        fail_step(s, &err, NULL);
        return;
    }
    if (uid && !other && existing_is_known(reply->object, s->pass->target->uid))
        r->checked_stale = true;
    else
        r->gone_uids[r->n_gone_uids++] = s->act->uid;
    end_step(s);
}

static void on_replaced(void *ctx, struct kube_reply *reply)
{
    struct step *s = ctx;

    s->call = NULL;
    on_deleted(s, reply);
}

/* Where the operator may not patch a pod, it deletes the pod, and its log with it: others need its room. A 404 is a failure: the
 * cache shows it, and nothing else would tell when that was not so. */
static void on_patched(struct step *s, struct kube_reply *reply)
{
    if (s->act->child == CHILD_POD && is_refusal(reply)) {
        s->pass->result->err = *reply->err;
        delete_pod(s, s->act->uid, s->act->version, on_replaced);
    } else if (reply->err) {
        fail_step(s, reply->err, &reply->status);
    } else {
        end_step(s);
    }
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
        on_patched(s, reply);
        return;
    case ACTION_EVENT:
        return;
    }
}

void step_begin(struct step *s, const struct step_pass *pass, const struct action *act)
{
    bool told = pass->target->ignored_told || pass->result->ignored;

    *s = (struct step){.pass = pass, .act = act, .lenient = act->lenient && told};
    begin_request(s);
}

void step_cancel(struct step *s)
{
    kube_call_cancel(s->call);
    *s = (struct step){0};
}

/* step.c - answers become expectations, problems, failures, or another request. */
#include "operator/step.h"

#include "operator/existing.h"
#include "operator/request.h"

#include <string.h>

static void end_step(struct step *s)
{
    const struct step_pass *pass = s->pass;

    *s = (struct step){0};
    pass->ended(pass->ctx);
}

static void fail_step(struct step *s, const struct err *err, const struct kube_status *status)
{
    (void)apply_result_fail(s->pass->result, err, status ? status->retry_after_ms : -1);
    end_step(s);
}

static void expect(struct step *s, const char *uid, bool present)
{
    apply_result_expect(s->pass->result, s->act, uid, present);
}

static void refuse(struct step *s, enum problem_kind kind, const struct err *err)
{
    apply_result_refuse(s->pass->result, s->act, kind, err);
    end_step(s);
}

/* Nothing went wrong, but the pass cannot go on before something is gone. */
static void wait_for(struct step *s)
{
    struct err err;

    err_set(&err, ERR_CONFLICT, "%s has to go first", s->act->name);
    if (apply_result_fail(s->pass->result, &err, -1))
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

/* A pod of an earlier attempt that the cache does not show, since someone took its labels away. */
static void delete_older(struct step *s, const char *uid)
{
    struct kube_request r = {.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = s->pass->ns};
    struct err err;

    r.name = s->act->name;
    r.body = kube_delete_options(s->pass->a, uid, NULL, "Background", -1);
    s->call = kube_call_start(s->pass->t, &r, on_older_deleted, s, &err);
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
    switch (existing_judge(s->act, reply->object, s->pass->job_uid)) {
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
        .verb = KUBE_GET, .resource = request_resource(s->act->child), .ns = s->pass->ns};
    struct err err;

    r.name = s->act->name;
    s->call = kube_call_start(s->pass->t, &r, on_existing, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

static void on_created(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});

    if (!reply->err) {
        s->pass->result->pods_created += s->act->child == CHILD_POD;
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
    struct apply_result *r = s->pass->result;
    bool other =
        reply->err && reply->err->kind == ERR_CONFLICT && s->act->child != CHILD_JOB && !s->act->version;
    bool gone = reply->err && (reply->err->kind == ERR_NOT_FOUND || other);

    if (gone && s->act->child == CHILD_JOB)
        r->job_missing = true; /* to be looked into: no later event tells when that was not so */
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
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");

    if (reply->err) {
        r->job_missing = reply->err->kind == ERR_NOT_FOUND;
        fail_step(s, reply->err, &reply->status);
        return;
    }
    r->status_written = true;
    snprintf(r->status_version, sizeof(r->status_version), "%s", version ? version : "");
    end_step(s);
}

static void on_checked(struct step *s, struct kube_reply *reply)
{
    struct apply_result *r = s->pass->result;
    const cJSON *meta = json_find(reply->object, (const char *[]){"metadata", NULL});
    const char *uid = json_str(meta, "uid");

    if (reply->err && reply->err->kind != ERR_NOT_FOUND) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    if (uid && strcmp(uid, s->act->uid) == 0 && existing_is_known(reply->object, s->pass->job_uid))
        r->checked_stale = true;
    else
        r->gone_uids[r->n_gone_uids++] = s->act->uid;
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

void step_begin(struct step *s, const struct step_pass *pass, const struct action *act)
{
    struct kube_request r = request_of(act, pass->ns, pass->a);
    struct err err;

    *s = (struct step){.pass = pass, .act = act};
    s->call = kube_call_start(pass->t, &r, on_reply, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

void step_cancel(struct step *s)
{
    kube_call_cancel(s->call);
    *s = (struct step){0};
}

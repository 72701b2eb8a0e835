/* actions.c - send the requests of a plan, and decide what each answer means for the reconcile. */
#include "operator/actions.h"

#include "common/memory.h"
#include "kube/client.h"
#include "kube/version.h"
#include "operator/existing.h"
#include "operator/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Parallel creates or deletes of pods: the number of connections. */
    STEPS_MAX = 8,
};

const struct kube_resource TRAINJOBS = {TRAINJOB_GROUP, TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND,
                                        false};

const struct kube_resource WORKLOADS = {WORKLOAD_GROUP, WORKLOAD_VERSION, "workloads", "Workload", false};

/* One action in progress. */
struct step {
    struct actions *as;
    const struct action *act; /* NULL: this entry is free */
    struct kube_request_run *call;
    void (*done)(struct step *s, struct kube_reply *reply); /* gets the answer to the call */
    bool writes;                                            /* the call is no GET */
    bool lenient;                                           /* send with fieldValidation=Ignore */
    bool deletes;                                           /* a pod that may not be patched */
    int version;                                            /* of the API, for a PodGroup: see group_api */
};

struct actions {
    const struct kube_transport *transport;
    struct kube_recorder *recorder;
    struct actions_target target;
    const struct plan *plan;
    struct arena *arena;
    void (*done)(void *ctx, const struct actions_result *result);
    void *ctx;
    int at; /* the next action */
    struct step steps[STEPS_MAX];
    int n_steps;  /* in progress */
    int n_before; /* pods created before the last create with `first` */
    bool running; /* inside run(), which itself handles steps that end meanwhile */
    struct actions_result result;
};

static void run(struct actions *as);
static void begin_request(struct step *s);

#define PODGROUPS(group, version)                                                                            \
    {                                                                                                        \
        group, version, "podgroups", "PodGroup", false                                                       \
    }

/* PodGroups of this scheduler in the version-th of the API's versions, newest first; NULL: there is no further
 * one. */
static const struct kube_resource *group_api(enum gang_scheduler scheduler, int version)
{
    enum { VERSIONS_MAX = 3 };
    static const struct kube_resource APIS[][VERSIONS_MAX] = {
        [GANG_COSCHEDULING] = {PODGROUPS("scheduling.x-k8s.io", "v1alpha1")},
        [GANG_VOLCANO] = {PODGROUPS("scheduling.volcano.sh", "v1beta1")},
        /* No release up to 1.37 serves any of them by default. */
        [GANG_NATIVE] = {PODGROUPS("scheduling.k8s.io", "v1beta1"),
                         PODGROUPS("scheduling.k8s.io", "v1alpha3"),
                         PODGROUPS("scheduling.k8s.io", "v1alpha2")},
    };

    return version < VERSIONS_MAX && APIS[scheduler][version].plural ? &APIS[scheduler][version] : NULL;
}

static const struct kube_resource *resource_of(const struct step *s)
{
    static const struct kube_resource *const RESOURCES[] = {
        [CHILD_POD] = &KUBE_PODS,
        [CHILD_SERVICE] = &KUBE_SERVICES,
        [CHILD_DEPLOYMENT] = &KUBE_DEPLOYMENTS,
        [CHILD_WORKLOAD] = &WORKLOADS,
        [CHILD_JOB] = &TRAINJOBS,
        [CHILD_POLICY] = &KUBE_NETWORK_POLICIES,
        [CHILD_KEY] = &KUBE_SECRETS,
    };

    return s->act->child == CHILD_GROUP ? group_api(s->act->gang, s->version) : RESOURCES[s->act->child];
}

/* See operator/plan/guards.h. */
static bool is_guard(const struct action *act)
{
    return act->kind == ACTION_CREATE && (act->child == CHILD_POLICY || act->child == CHILD_KEY);
}

/* `act`: the step's action, or one on the same object. */
static struct kube_request request_of(const struct step *s, const struct action *act)
{
    static const enum kube_verb VERBS[] = {
        [ACTION_STATUS] = KUBE_PATCH, [ACTION_DELETE] = KUBE_DELETE, [ACTION_CREATE] = KUBE_CREATE,
        [ACTION_PATCH] = KUBE_PATCH,  [ACTION_APPLY] = KUBE_APPLY,   [ACTION_EDIT] = KUBE_GET,
    };
    struct kube_request r = {.verb = VERBS[act->kind], .resource = resource_of(s), .ns = s->as->target.ns};

    r.name = act->kind == ACTION_CREATE ? NULL : act->name;
    r.subresource = act->kind == ACTION_STATUS || act->kind == ACTION_APPLY ? "status" : NULL;
    if (act->kind == ACTION_EDIT)
        return r;
    if (act->body)
        r.body = sv_from(act->body);
    if (act->kind != ACTION_DELETE)
        r.field_manager = act->manager ? act->manager : "ptj-operator";
    if (act->kind == ACTION_CREATE && act->child == CHILD_POD)
        r.field_validation = s->lenient ? "Ignore" : "Strict"; /* fields that the server does not know */
    if (act->kind == ACTION_DELETE)
        r.body = kube_delete_options(s->as->arena, act->uid, act->version, act->force);
    return r;
}

/* ---- one step: its request and the answer */

static void record(struct actions *as, const struct action *act)
{
    struct kube_recorder_object o = {.api_version = TRAINJOB_API_VERSION,
                                     .kind = TRAINJOB_KIND,
                                     .ns = as->target.ns,
                                     .name = as->target.job,
                                     .uid = as->target.uid};

    kube_recorder_event(as->recorder, &o, act->warning, act->reason, "%s", act->message);
}

static void end_step(struct step *s)
{
    struct actions *as = s->as;

    *s = (struct step){0};
    as->n_steps--;
    if (!as->running)
        run(as);
}

/* Record the first failure as the result; later ones change nothing. */
static bool note_failure(struct step *s, enum problem_kind kind, const struct err *err,
                         int64_t retry_after_ms)
{
    struct actions_result *r = &s->as->result;

    if (!r->ok)
        return false;
    r->ok = false;
    r->err = *err;
    r->retry_after_ms = retry_after_ms;
    if (kind != PROBLEM_NONE)
        r->problem = (struct plan_problem){.kind = kind,
                                           .child = s->act->child,
                                           .name = s->act->name,
                                           .message = arena_strdup(s->as->arena, err->msg)};
    return true;
}

static bool is_refusal(int code)
{
    return code == 400 || code == 403 || code == 422;
}

/* A create that fails becomes status.reason once it failed twice or took long (jobmemory.c). Another write that is refused
 * is repeated until the policy or the permission changes: an event reports it, unless one with this code did (jobmemory.c). */
static void fail_step(struct step *s, const struct err *err, const struct kube_status *status)
{
    struct actions *as = s->as;
    bool create = s->act->kind == ACTION_CREATE;
    struct err wrapped = *err;

    err_wrap(&wrapped, "%s %s %s",
             create                                        ? "creating"
             : s->deletes || s->act->kind == ACTION_DELETE ? "deleting"
                                                           : "changing",
             resource_of(s)->kind, s->act->name);
    bool first = note_failure(s, create ? PROBLEM_FAILED : PROBLEM_NONE, &wrapped,
                              status ? status->retry_after_ms : -1);
    bool refused = first && !create && status && is_refusal(status->code) && as->target.job[0];
    if (refused && status->code != as->target.refused_reported) {
        as->result.refused = status->code;
        record(as, &(struct action){.warning = true, .reason = "WriteRefused", .message = wrapped.msg});
    }
    end_step(s);
}

/* The API server refused a create: a problem of the job, not a failure of the operator. */
static void refuse(struct step *s, enum problem_kind kind, const struct err *err)
{
    (void)note_failure(s, kind, err, -1);
    end_step(s);
}

/* Not a failure, but the reconcile cannot continue before an object is deleted. */
static void wait_for(struct step *s)
{
    struct err err;

    err_set(
        &err, ERR_CONFLICT,
        "%s %s is being deleted, or of an earlier job or attempt, and still exists: look at its finalizers",
        resource_of(s)->kind, s->act->name);
    if (note_failure(s, PROBLEM_NAME_CONFLICT, &err, -1))
        s->as->result.wait = true;
    end_step(s);
}

/* Record the version in the answer to a write. False: the answer has none. */
static bool note_version(struct step *s, const struct kube_reply *reply)
{
    char *highest = s->as->result.versions[s->act->child];
    const char *version = json_meta(reply->names, "resourceVersion");

    if (!version)
        return false;
    if (!highest[0] || !version_is_newer(highest, version))
        snprintf(highest, ACTIONS_VERSION_BYTES, "%s", version);
    return true;
}

/* Whether the server may have done the write although it sent no answer, no JSON, or a 5xx. */
static bool is_lost(const struct kube_reply *reply)
{
    return reply->err && (reply->status.code < 300 || reply->status.code >= 500);
}

/* Whether a delete failed for another reason than that the object is gone, or another one has its name. */
static bool is_delete_failure(const struct kube_reply *reply)
{
    return reply->err && reply->err->kind != ERR_NOT_FOUND && reply->err->kind != ERR_CONFLICT;
}

static bool may_go_on(const struct actions *as)
{
    return !as->target.may_go_on || as->target.may_go_on(as->target.ctx);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct step *s = ctx;
    struct actions_result *r = &s->as->result;

    s->call = NULL;
    r->lost |= s->writes && is_lost(reply);
    if (s->act->child == CHILD_JOB && reply->err)
        r->doubt = is_lost(reply) || reply->err->kind == ERR_CONFLICT || reply->err->kind == ERR_NOT_FOUND;
    s->done(s, reply);
}

/* Send a request of this step, or end the step if no more may be sent. */
static void send(struct step *s, const struct kube_request *r,
                 void (*done)(struct step *s, struct kube_reply *reply))
{
    struct err err;

    if (!may_go_on(s->as)) {
        end_step(s);
        return;
    }
    s->done = done;
    s->writes = r->verb != KUBE_GET;
    s->call = kube_request_start(s->as->transport, r, on_reply, s, &err);
    if (!s->call)
        fail_step(s, &err, NULL);
}

/* `version`: delete only at this version; NULL: at any. */
static void delete_it(struct step *s, const char *uid, const char *version,
                      void (*done)(struct step *s, struct kube_reply *reply))
{
    const struct action act = {
        .kind = ACTION_DELETE, .child = s->act->child, .name = s->act->name, .uid = uid, .version = version};
    const struct kube_request r = request_of(s, &act);

    send(s, &r, done);
}

static void on_older_deleted(struct step *s, struct kube_reply *reply)
{
    if (is_delete_failure(reply))
        fail_step(s, reply->err, &reply->status);
    else
        wait_for(s);
}

/* The existing object cannot be read. If it is ours, the create counts as done: the cache will report it as
 * unreadable. */
static void judge_unreadable(struct step *s, const struct kube_reply *reply)
{
    const cJSON *meta = json_child(reply->names, "metadata");
    struct err err = *reply->unreadable;

    err_wrap(&err, "%s %s exists and cannot be read", resource_of(s)->kind, s->act->name);
    if (strcmp(api_controller_uid(meta), s->as->target.uid) != 0) {
        refuse(s, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
    s->as->result.unseen = true;
    end_step(s);
}

static void judge_existing(struct step *s, struct kube_reply *reply)
{
    const char *uid = json_meta(reply->object, "uid");
    struct err err;

    switch (existing_judge(s->act, reply->object, s->as->target.job, s->as->target.uid)) {
    case EXISTING_WANTED:
        if (s->act->child != CHILD_GROUP) {
            (void)note_version(s, reply);
            s->as->result.unseen = true;
        }
        end_step(s);
        return;
    case EXISTING_OLDER: /* not in the cache because its labels were removed, or of an earlier attempt */
        delete_it(s, uid ? uid : "", NULL, on_older_deleted);
        return;
    case EXISTING_LEAVING:
    case EXISTING_NEWER:
        wait_for(s);
        return;
    case EXISTING_FOREIGN:
        err_set(&err, ERR_CONFLICT, "%s %s exists and belongs to another owner", resource_of(s)->kind,
                s->act->name);
        refuse(s, PROBLEM_NAME_CONFLICT, &err);
        return;
    }
}

/* The name is taken: by the object to create, by an older one of ours to delete first, or by another owner's. */
static void on_existing(struct step *s, struct kube_reply *reply)
{
    if (reply->err && reply->err->kind != ERR_NOT_FOUND)
        fail_step(s, reply->err, &reply->status);
    else if (reply->err)
        wait_for(s);
    else if (reply->unreadable)
        judge_unreadable(s, reply);
    else
        judge_existing(s, reply);
}

static void look_at(struct step *s, void (*done)(struct step *s, struct kube_reply *reply))
{
    struct kube_request r = {.verb = KUBE_GET, .resource = resource_of(s), .ns = s->as->target.ns};

    r.name = s->act->name;
    send(s, &r, done);
}

/* If the server does not know a field: a job that ran before continues without the field, as it did; in any
 * other job the user has to correct it. */
static void on_refused(struct step *s, const struct err *err)
{
    struct actions_result *result = &s->as->result;
    struct err wrapped = *err;
    enum refusal by = refusal_of(resource_of(s)->kind, err->msg);

    if (by == REFUSAL_FIELD && s->act->child == CHILD_POD)
        refusal_put_paths(&wrapped, s->act->body);
    if (by == REFUSAL_FIELD && s->act->lenient && !s->lenient) {
        s->lenient = true;
        if (!result->ignored)
            result->ignored = arena_printf(
                s->as->arena, "the pods are created without a field that the API server does not know: %s",
                wrapped.msg);
        begin_request(s);
        return;
    }
    bool ours = by == REFUSAL_POLICY || s->act->child == CHILD_WORKLOAD;
    refuse(s, ours ? PROBLEM_REFUSED : PROBLEM_INVALID, &wrapped);
}

/* Whether the created object lacks the label that our watches select. */
static bool is_out_of_sight(const cJSON *made)
{
    return json_find(made, (const char *[]){"metadata", "uid", NULL}) && !existing_is_labelled(made);
}

/* ---- PodGroups */

/* Whether the API server does not serve this resource. */
static bool lacks_api(const struct kube_reply *reply)
{
    return reply->err && reply->status.code == 404 && !strstr(reply->err->msg, "namespaces \"");
}

static bool has_next_version(const struct step *s)
{
    return group_api(s->act->gang, s->version + 1);
}

static void note_group_version(const struct step *s)
{
    if (s->act->gang == GANG_NATIVE && s->as->target.native_version)
        *s->as->target.native_version = s->version;
}

static void on_group_api_missing(struct step *s)
{
    const struct kube_resource *api = resource_of(s);
    struct err err;

    if (has_next_version(s)) {
        s->version++;
        begin_request(s);
        return;
    }
    note_group_version(&(struct step){.as = s->as, .act = s->act});
    err_set(&err, ERR_NOT_FOUND,
            "the API server has no podgroups.%s: install that API, or run the operator with another "
            "--gang-scheduler than %s",
            api->group, gang_schedulers[s->act->gang]);
    refuse(s, PROBLEM_REFUSED, &err);
}

/* Whether the API server dropped the pod's PodGroup, as it does without a message if it does not know it. */
static bool left_gang(const struct action *act, const cJSON *made)
{
    return act->child == CHILD_POD && act->gang == GANG_NATIVE && made && !pod_has_native_group(made);
}

static void on_group_gone(struct step *s, struct kube_reply *reply)
{
    if (is_delete_failure(reply) && reply->status.code != 403)
        fail_step(s, reply->err, &reply->status);
    else
        end_step(s);
}

/* Without permission, or without the API, there is nothing of ours to delete; pods must not wait for that. */
static void on_group_found(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_child(reply->names, "metadata");
    const char *uid = json_str(meta, "uid");

    if (reply->err && reply->status.code == 404 && has_next_version(s)) {
        s->version++;
        look_at(s, on_group_found);
    } else if (reply->err) {
        on_group_gone(s, reply);
    } else if (uid && strcmp(api_controller_uid(meta), s->as->target.uid) == 0) {
        delete_it(s, uid, NULL, on_group_gone);
    } else {
        end_step(s);
    }
}

/* 404 and 409 (another object has the name now) mean that the object is deleted. They are failures if the
 * delete has a version, since the object may be at a newer one, and for the job itself, since no later event
 * would trigger a reconcile. */
static void on_deleted(struct step *s, struct kube_reply *reply)
{
    struct actions_result *r = &s->as->result;
    bool job = s->act->child == CHILD_JOB;
    bool other = reply->err && reply->err->kind == ERR_CONFLICT && !job && !s->act->version;
    bool gone = reply->err && (reply->err->kind == ERR_NOT_FOUND || other);

    if (reply->err && (!gone || job)) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    r->pods_deleted += s->act->child == CHILD_POD && !s->act->force && !gone;
    if (reply->err || !note_version(s, reply))
        r->unseen = true;
    end_step(s);
}

/* The first pod of a replicaSpec is created alone, so only one has to be deleted again. */
static void refuse_pod_without_gang(struct step *s, struct kube_reply *reply)
{
    const char *uid = json_meta(reply->object, "uid");
    struct err err;

    err_set(&err, ERR_INVALID,
            "the API server dropped spec.schedulingGroup of pod %s: its feature gate GenericWorkload is off; "
            "run the "
            "operator with another --gang-scheduler than native",
            s->act->name);
    (void)note_failure(s, PROBLEM_REFUSED, &err, -1);
    (void)note_version(s, reply);
    delete_it(s, uid ? uid : "", NULL, on_deleted);
}

static void on_created(struct step *s, struct kube_reply *reply)
{
    struct actions_result *r = &s->as->result;
    struct err err;

    if (is_guard(s->act) && (!reply->err || reply->status.reason == KUBE_REASON_ALREADY_EXISTS)) {
        end_step(s);
    } else if (s->act->keep &&
               (reply->status.reason == KUBE_REASON_ALREADY_EXISTS || is_refusal(reply->status.code))) {
        r->unseen = true;
        end_step(s);
    } else if (s->act->child == CHILD_GROUP && lacks_api(reply)) {
        on_group_api_missing(s);
    } else if (s->act->child == CHILD_GROUP && !reply->err) {
        note_group_version(s);
        end_step(s);
    } else if (!reply->err && left_gang(s->act, reply->object)) {
        refuse_pod_without_gang(s, reply);
    } else if (!reply->err && s->act->child != CHILD_WORKLOAD && is_out_of_sight(reply->object)) {
        err_set(&err, ERR_INVALID, "a webhook or a policy removed the label %s from %s %s", LABEL_JOB,
                resource_of(s)->kind, s->act->name);
        refuse(s, PROBLEM_REFUSED, &err);
    } else if (!reply->err) {
        r->pods_created += s->act->child == CHILD_POD;
        r->unseen |= !note_version(s, reply);
        end_step(s);
    } else if (reply->status.reason == KUBE_REASON_ALREADY_EXISTS) {
        look_at(s, on_existing);
    } else if (is_refusal(reply->status.code)) {
        on_refused(s, reply->err);
    } else {
        fail_step(s, reply->err, &reply->status);
    }
}

static void on_status(struct step *s, struct kube_reply *reply)
{
    struct actions_result *r = &s->as->result;

    if (reply->err) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    r->status_written = true;
    r->doubt = !note_version(s, reply); /* the answer was cut before the version */
    end_step(s);
}

/* If the operator may not patch a pod, it deletes the pod and so its log, to free its resources for others. A
 * 404 is a failure: the cache has the pod, and no other check would find a wrong cache. */
static void on_patched(struct step *s, struct kube_reply *reply)
{
    if (s->act->child == CHILD_POD && is_refusal(reply->status.code)) {
        s->as->result.err = *reply->err;
        s->deletes = true;
        delete_it(s, s->act->uid, s->act->version, on_deleted);
    } else if (reply->err) {
        fail_step(s, reply->err, &reply->status);
    } else {
        (void)note_version(s, reply);
        end_step(s);
    }
}

/* ---- an existing object: GET, change, PUT */

/* An object that is gone, or that another one of its name replaced, needs no change. */
static void on_written(struct step *s, struct kube_reply *reply)
{
    if (reply->err && reply->err->kind != ERR_NOT_FOUND) {
        fail_step(s, reply->err, &reply->status);
        return;
    }
    s->as->result.unseen |= reply->err || !note_version(s, reply);
    end_step(s);
}

static void on_put(struct step *s, struct kube_reply *reply)
{
    if (s->act->edit != EDIT_RELEASE && !s->act->keep && is_refusal(reply->status.code))
        refuse(s, PROBLEM_REFUSED, reply->err);
    else
        on_written(s, reply);
}

static void write_it(struct step *s, const cJSON *object)
{
    struct kube_request r = {.verb = KUBE_UPDATE,
                             .resource = resource_of(s),
                             .ns = s->as->target.ns,
                             .name = s->act->name,
                             .subresource = s->act->edit == EDIT_RELEASE ? "status" : NULL,
                             .field_manager = "ptj-operator"};

    r.body = sv_from(json_print(object, s->as->arena));
    send(s, &r, on_put);
}

static bool change(const struct action *act, cJSON *object, int64_t now_ms)
{
    struct err ignored;

    if (act->edit == EDIT_RELEASE)
        return workload_release(object, now_ms);
    cleanup_json cJSON *patch = json_parse(act->body, strlen(act->body), &ignored);
    return act->edit == EDIT_ADOPT ? workload_adopt(object, patch) : workload_set_spec(object, patch);
}

/* Only the version that was planned from is changed: any other one is planned again. */
static void on_got(struct step *s, struct kube_reply *reply)
{
    const cJSON *meta = json_child(reply->object, "metadata");
    const char *uid = json_str(meta, "uid"), *version = json_str(meta, "resourceVersion");
    struct err err;

    if (reply->err || !reply->object) {
        if (reply->unreadable)
            fail_step(s, reply->unreadable, NULL);
        else
            on_written(s, reply);
        return;
    }
    bool other = s->act->edit != EDIT_ADOPT &&
                 (!uid || strcmp(uid, s->act->uid) != 0 || !version || strcmp(version, s->act->version) != 0);
    if (other) {
        err_set(&err, ERR_CONFLICT, "it has changed since it was planned");
        fail_step(s, &err, NULL);
    } else if (change(s->act, reply->object, s->as->target.now_ms)) {
        write_it(s, reply->object);
    } else {
        s->as->result.unseen = true;
        end_step(s);
    }
}

/* Send the action's own request. */
static void begin_request(struct step *s)
{
    static void (*const DONE[])(struct step * s, struct kube_reply * reply) = {
        [ACTION_STATUS] = on_status, [ACTION_DELETE] = on_deleted, [ACTION_CREATE] = on_created,
        [ACTION_PATCH] = on_patched, [ACTION_APPLY] = on_written,  [ACTION_EDIT] = on_got,
    };
    const struct kube_request r = request_of(s, s->act);

    send(s, &r, DONE[s->act->kind]);
}

/* ---- all actions, in order */

static void finish(struct actions *as)
{
    if (as->result.ignored && !as->target.ignored_reported)
        record(as, &(struct action){.warning = true, .reason = "Ignored", .message = as->result.ignored});
    as->done(as->ctx, &as->result);
    free(as);
}

static void begin(struct actions *as, const struct action *act)
{
    bool reported = as->target.ignored_reported || as->result.ignored;
    struct step *s = as->steps;

    while (s->act)
        s++;
    as->n_steps++;
    if (act->first)
        as->n_before = as->result.pods_created;
    *s = (struct step){.as = as, .act = act, .lenient = act->lenient && reported};
    if (act->child == CHILD_GROUP && act->gang == GANG_NATIVE && as->target.native_version)
        s->version = *as->target.native_version;
    if (act->child == CHILD_GROUP && act->kind == ACTION_DELETE)
        look_at(s, on_group_found);
    else
        begin_request(s);
}

/* Actions run one at a time, with these exceptions: guards run in parallel to the create before them; deletes
 * of pods run in parallel; so do creates of pods, after the first one of a replicaSpec, and one more in
 * parallel per success, so that an exhausted quota refuses one request. */
static bool may_begin(const struct actions *as, const struct action *act)
{
    bool joins = is_guard(act) || (act->kind == ACTION_CREATE && act->child == CHILD_GROUP);

    if (as->n_steps == 0 || (joins && act[-1].kind == ACTION_CREATE))
        return true;
    if (as->n_steps == STEPS_MAX || act->child != CHILD_POD || act->kind != act[-1].kind ||
        act[-1].child != CHILD_POD)
        return false;
    return act->kind == ACTION_DELETE || (act->kind == ACTION_CREATE && !act->first &&
                                          as->n_steps <= as->result.pods_created - as->n_before);
}

/* Begin the next actions, as many as may begin now. */
static void run(struct actions *as)
{
    as->running = true;
    while (as->result.ok && as->at < as->plan->n_actions && may_begin(as, &as->plan->actions[as->at]) &&
           may_go_on(as)) {
        const struct action *act = &as->plan->actions[as->at++];
        if (act->kind == ACTION_EVENT)
            record(as, act);
        else
            begin(as, act);
    }
    as->running = false;
    if (as->n_steps == 0)
        finish(as);
}

struct actions *actions_new(const struct kube_transport *t, struct kube_recorder *r,
                            const struct actions_target *target, const struct plan *plan, struct arena *a,
                            void (*done)(void *ctx, const struct actions_result *result), void *ctx)
{
    struct actions *as = memory_must(calloc(1, sizeof(*as)));

    *as = (struct actions){.transport = t,
                           .recorder = r,
                           .target = *target,
                           .plan = plan,
                           .arena = a,
                           .done = done,
                           .ctx = ctx,
                           .result = {.ok = true, .retry_after_ms = -1}};
    return as;
}

void actions_run(struct actions *as)
{
    run(as);
}

void actions_cancel(struct actions *as)
{
    if (!as)
        return;
    for (int i = 0; i < STEPS_MAX; i++)
        kube_request_cancel(as->steps[i].call);
    free(as);
}

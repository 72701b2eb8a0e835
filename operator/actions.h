/* actions.h - send the requests of a plan in order, and report their results to the controller. The first
 * failure ends the reconcile.
 *
 * Ownership: actions_new copies nothing: plan, arena, the target's strings and the result live until `done`
 *            returns. The result's strings live in the arena.
 * Errors:    in result.err. An action whose effect exists already is not an error: creating this job's object
 *            that exists, deleting an object that is gone.
 * Order:     one request after the other. In parallel, up to 8: consecutive creates of pods, consecutive
 *            deletes of pods, and creates of guards and PodGroups with the create before them. The first pod of each
 *            replicaSpec is created alone; then each create that succeeds allows one more at a time, so that
 *            an exhausted quota refuses one request, not eight. After a failure, or when may_go_on returns
 *            false, no action is begun, and `done` is called when the requests in flight have ended; the
 *            result includes their effects. `done` is called exactly once, unless cancelled; then the struct
 *            is freed. Events are recorded in the order of the actions, so that none reports a status that
 *            could not be written.
 */
#ifndef TK_OPERATOR_ACTIONS_H
#define TK_OPERATOR_ACTIONS_H

#include "kube/recorder.h"
#include "kube/request.h"
#include "operator/plan/plan.h"

enum { ACTIONS_VERSION_BYTES = DECODE_VERSION_BYTES + 1 };

extern const struct kube_resource TRAINJOBS, WORKLOADS;

struct actions_result {
    bool ok;                /* no failure so far */
    struct err err;         /* when not ok; else why a pod was deleted instead of patched, or empty */
    int64_t retry_after_ms; /* -1: not given */
    /* Not ok, but only because an object must be deleted first. The status reports `problem` if that lasts. */
    bool wait;
    struct plan_problem problem; /* kind NONE unless a create failed */
    bool status_written;
    /* By enum child_kind: the highest resourceVersion in an answer to a write; "": none. */
    char versions[CHILD_KINDS][ACTIONS_VERSION_BYTES];
    bool unseen; /* an action's effect existed already: no version shows when the cache includes it */
    bool lost;   /* a write got no answer */
    /* The job may be at another version than the planned one: a write of it got 409 or 404, no answer, or an
     * answer without a version. */
    bool doubt;
    int pods_created, pods_deleted;
    int refused;         /* the HTTP status that an event WriteRefused reported; 0: there was none */
    const char *ignored; /* the fields of the template without which pods were created; NULL: none */
};

/* The job that is reconciled. */
struct actions_target {
    const char *ns, *job, *uid;
    bool (*may_go_on)(void *ctx); /* called before each request; NULL: always */
    void *ctx;
    /* actions_result.ignored of this generation was reported: send creates with fieldValidation=Ignore. */
    bool ignored_reported;
    int refused_reported; /* record no event WriteRefused about this HTTP status; 0: about each */
    int64_t now_ms;       /* Unix time */
    int *native_version;  /* the version of native PodGroups that answered last: see group_api */
};

struct actions;

struct actions *actions_new(const struct kube_transport *t, struct kube_recorder *r,
                            const struct actions_target *target, const struct plan *plan, struct arena *a,
                            void (*done)(void *ctx, const struct actions_result *result), void *ctx);
void actions_run(struct actions *as); /* `done` may be called inside, which frees *as */
void actions_cancel(struct actions *as);

#endif

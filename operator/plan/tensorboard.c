/* tensorboard.c - decide whether TensorBoard runs, and create, replace or delete its objects. */
#include "operator/plan/tensorboard.h"

#include "operator/plan/desired.h"
#include "operator/plan/guards.h"

#include <string.h>

enum {
    UNAVAILABLE_MS = 60000, /* time to pull the image and start the server */
    UNLISTED_MS = 60000,    /* unseen for so long, the status says why */
    LOOK_AGAIN_MS = 1000,
    LOOK_AGAIN_MAX_MS = 60000,
};

/* Before pod 0 of a running job has a node, TensorBoard could bind the volume to the wrong node. A job that ran and is queued
 * again keeps it until a pod may be created, as a paused one does: the volume is bound. */
static bool waits_for_master(const struct planner *p)
{
    const struct pod *master = p->slots[0].pod;
    bool queued = p->queue.verdict == QUEUE_WAIT || p->queue.verdict == QUEUE_HOLD;

    if (jobstatus_finished(&p->st) || p->spec->paused || (queued && !master && p->st.ran_attempt >= 0))
        return false;
    return !master || !master->node[0];
}

/* The hash of the Deployment without replicas, node and policy: changes of these do not replace it. */
static char *spec_hash(struct planner *p)
{
    cleanup_json cJSON *d = desired_tensorboard_deployment(p, -1, "");

    return arena_printf(p->a, "%016llx", (unsigned long long)json_hash(d));
}

static void create(struct planner *p, enum child_kind child, cJSON *body)
{
    (void)planner_create(p, &p->tensorboard, child, desired_tensorboard_name(p->a, p->job->name), body);
}

static void scale(struct planner *p, const struct child *d, int replicas)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();

    cJSON_AddStringToObject(cJSON_AddObjectToObject(doc, "metadata"), "uid", d->uid);
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    cJSON_AddNumberToObject(spec, "replicas", replicas);
    if (replicas) {
        cJSON *template = cJSON_AddObjectToObject(spec, "template");
        cJSON *pod = cJSON_AddObjectToObject(template, "spec");
        cJSON_AddItemToObject(pod, "affinity", desired_tensorboard_affinity(p));
    }
    planner_on(p, &p->tensorboard, ACTION_PATCH, CHILD_DEPLOYMENT, d->name, d->uid)->body =
        json_print(doc, p->a);
}

static void remove_children(struct planner *p)
{
    const struct child *d = p->in->tb_deployment;
    const struct child *s = p->in->tb_service;

    if (d && !d->deleting)
        (void)planner_on(p, &p->tensorboard, ACTION_DELETE, CHILD_DEPLOYMENT, d->name, d->uid);
    if (s && !s->deleting)
        (void)planner_on(p, &p->tensorboard, ACTION_DELETE, CHILD_SERVICE, s->name, s->uid);
}

static bool expired(struct planner *p)
{
    const struct opt_i64 *ttl = &p->spec->tensorboard.ttl_after_finished_s;

    return ttl->set && jobstatus_finished(&p->st) && planner_is_due(p, p->st.completion_ms + ttl->v * 1000);
}

/* If the spec differs, replace the Deployment: its strategy is Recreate anyway, and a merge patch would leave
 * old fields. */
static void keep_deployment(struct planner *p, int replicas)
{
    const struct child *d = p->in->tb_deployment;
    const char *hash = spec_hash(p);

    if (!d) {
        guards_create_policy(p, &p->tensorboard);
        create(p, CHILD_DEPLOYMENT, desired_tensorboard_deployment(p, replicas, hash));
    } else if (d->deleting) {
        return;
    } else if (strcmp(d->spec_hash, hash) != 0) {
        (void)planner_on(p, &p->tensorboard, ACTION_DELETE, CHILD_DEPLOYMENT, d->name, d->uid);
    } else if (d->replicas != replicas) {
        scale(p, d, replicas);
    }
}

/* Whether a problem of the last reconcile delays TensorBoard. The memory has only one problem. If it is
 * another child's, a refusal of TensorBoard would replace it, and vice versa, so that neither would wait. */
static bool held(struct planner *p)
{
    const struct plan_problem *problem = &p->in->problem;
    static const char *const WORDS[] = {"", "NameConflict", "Refused", "Invalid", "CreateFailed"};

    if (problem->kind == PROBLEM_NONE)
        return false;
    if (problem->child == CHILD_POLICY ||
        strcmp(problem->name, desired_tensorboard_name(p->a, p->job->name)) == 0) {
        p->st.tensorboard.reason = WORDS[problem->kind];
        p->st.tensorboard.note = problem->message;
    }
    return !planner_is_due(p, problem->retry_ms);
}

/* TensorBoard's pods are not watched, so report the Deployment's conditions. They do not distinguish an
 * unscheduled pod from a missing image. */
static void report_unavailable(struct planner *p)
{
    struct tensorboard_status *tb = &p->st.tensorboard;
    const struct child *d = p->in->tb_deployment;

    if (!d || d->deleting || d->replicas == 0 || !(d->refused || d->unavailable_ms))
        return;
    if (!d->refused && !planner_is_due(p, d->unavailable_ms + UNAVAILABLE_MS))
        return;
    tb->reason = "NotAvailable";
    tb->note = d->refused ? arena_strdup(p->a, d->trouble)
                          : arena_printf(p->a, "%s (see kubectl describe pods -l " LABEL_TENSORBOARD "=%s)",
                                         d->trouble, p->job->name);
}

/* The Deployment cannot be seen now. What was reported of it stays; if that lasts and nothing was, the status says why. The next look
 * is as far ahead as the Deployment has been unseen. */
static void wait_for_sight(struct planner *p)
{
    struct tensorboard_status *tb = &p->st.tensorboard;
    const bool wanted = p->spec->tensorboard.present;
    const int64_t unseen_ms = p->in->tb_unseen_for_ms;

    if (tb->present || wanted)
        planner_requeue(p, p->now_ms + (unseen_ms < LOOK_AGAIN_MS       ? LOOK_AGAIN_MS
                                        : unseen_ms > LOOK_AGAIN_MAX_MS ? LOOK_AGAIN_MAX_MS
                                                                        : unseen_ms));
    if (!wanted || tb->reason || unseen_ms < UNLISTED_MS)
        return;
    *tb = (struct tensorboard_status){.present = true,
                                      .reason = "NotListed",
                                      .note = "the operator cannot list Deployments; its log says why"};
}

void tensorboard_plan(struct planner *p)
{
    struct tensorboard_status *tb = &p->st.tensorboard;
    const struct child *d = p->in->tb_deployment;

    if (p->in->tb_unseen_for_ms) {
        wait_for_sight(p);
        return;
    }
    *tb = (struct tensorboard_status){.present = p->spec->tensorboard.present};
    if (!p->in->tensorboard_image) {
        tb->reason = tb->present ? "Disabled" : NULL;
        tb->note = tb->present ? "the operator makes no TensorBoards (--tensorboard=false)" : NULL;
        return;
    }
    if (!tb->present || expired(p)) {
        tb->reason = tb->present ? "Expired" : NULL;
        remove_children(p);
        return;
    }
    bool waits = waits_for_master(p);
    bool off = p->spec->tensorboard.suspend;
    tb->service = desired_tensorboard_name(p->a, p->job->name);
    tb->ready = !off && !waits && d && d->available > 0;
    tb->reason = off ? "Suspended" : tb->ready ? "Available" : waits ? "WaitingForPod" : "Starting";
    tb->note = waits && !off ? "starts once pod 0 has a node" : NULL;
    if (!off && !waits && !tb->ready)
        report_unavailable(p);
    if (held(p))
        return;
    if (!p->in->tb_service)
        create(p, CHILD_SERVICE, desired_tensorboard_service(p));
    keep_deployment(p, off || waits ? 0 : 1);
}

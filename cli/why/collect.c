/* collect.c - the job, its pods, then what belongs to the pod in question: events, PVCs, node, log. */
#include "cli/why/collect.h"

#include "cli/podlog.h"
#include "common/memory.h"
#include "common/text.h"
#include "operator/api/workload.h"

#include <string.h>

enum { CLAIMS_MAX = 4, NODES_MAX = 4 };

static const struct kube_resource CLAIMS = {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
                                            false};
static const struct kube_resource NODES = {"", "v1", "nodes", "Node", true};

static const struct kube_resource BUDGETS = {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget",
                                             false};

static void add_gap(struct collected *g, const char *what, const struct err *err)
{
    if (g->facts.n_gaps == WHY_GAPS_MAX)
        return;
    char *gap = g->facts.gaps[g->facts.n_gaps++];
    gap[0] = '\0';
    if (err->code == 403) /* the message names it */
        text_add(gap, ERR_MSG_BYTES, "%s", err->msg);
    else
        text_add(gap, ERR_MSG_BYTES, "%s: %s", what, err->msg);
}

/* Move the items of one page into the array; *more: the token of the next page, to be freed, or NULL. */
static int read_page(struct collected *g, const struct kube_request *r, cJSON **array, char **more,
                     struct err *err)
{
    cleanup_json cJSON *answer = NULL;

    if (session_call(g->session, r, &answer, err) < 0)
        return -1;
    cJSON *items = json_child(answer, "items");
    if (!*array)
        *array = cJSON_CreateArray();
    while (cJSON_IsArray(items) && items->child)
        cJSON_AddItemToArray(*array, cJSON_DetachItemViaPointer(items, items->child));
    const char *token = json_meta(answer, "continue");
    *more = token && token[0] ? memory_strdup(token) : NULL;
    return 0;
}

/* Move the items of all pages into the array; what could not be read is a gap. False: nothing was read. */
static bool list(struct collected *g, struct kube_request r, cJSON **array)
{
    struct err err;
    char *token = NULL;

    r.limit = WHY_PAGE;
    for (int i = 0; i < WHY_PAGES_MAX; i++) {
        cleanup_free char *from = TAKE(token);
        r.continue_token = from;
        if (read_page(g, &r, array, &token, &err) < 0) {
            add_gap(g, r.resource->plural, &err);
            return i > 0;
        }
        if (!token)
            return true;
    }
    free(token);
    (void)err_set(&err, ERR_INVALID, "there are more than %d: the others were not looked at",
                  WHY_PAGES_MAX * WHY_PAGE);
    add_gap(g, r.resource->plural, &err);
    return true;
}

/* Add the object; one that is not there is left out. False: the permission is missing. */
static bool get(struct collected *g, const struct kube_resource *resource, const char *name, cJSON **array)
{
    const struct kube_request r = {.verb = KUBE_GET,
                                   .resource = resource,
                                   .ns = resource->cluster_scoped ? NULL : g->session->ns,
                                   .name = name};
    cJSON *object = NULL;
    struct err err;

    if (session_call(g->session, &r, &object, &err) == 0) {
        if (!*array)
            *array = cJSON_CreateArray();
        cJSON_AddItemToArray(*array, object);
        return true;
    }
    if (err.kind != ERR_NOT_FOUND)
        add_gap(g, resource->plural, &err);
    return err.kind == ERR_NOT_FOUND;
}

static bool events_of(struct collected *g, const char *name)
{
    char selector[DECODE_NAME_BYTES + 32];
    const struct kube_request r = {
        .verb = KUBE_LIST, .resource = &KUBE_EVENTS, .ns = g->session->ns, .field_selector = selector};

    snprintf(selector, sizeof(selector), "involvedObject.name=%.*s", DECODE_NAME_BYTES, name);
    return list(g, r, &g->facts.events);
}

static void read_pods(struct collected *g)
{
    char selector[sizeof(LABEL_JOB) + DECODE_NAME_BYTES + 2];
    const struct kube_request r = {
        .verb = KUBE_LIST, .resource = &KUBE_PODS, .ns = g->session->ns, .label_selector = selector};

    snprintf(selector, sizeof(selector), LABEL_JOB "=%s", g->job->name);
    (void)list(g, r, &g->facts.pods);
}

/* A node matters when a pod on it should run and is not ready, or does not end. */
static void read_nodes(struct collected *g)
{
    static const char *const CONDITIONS[] = {"status", "conditions", NULL};
    const cJSON *object, *c;
    int n = 0;

    cJSON_ArrayForEach(object, g->facts.pods)
    {
        const char *node = json_str(json_child(object, "spec"), "nodeName");
        bool suspect = json_meta(object, "deletionTimestamp");
        cJSON_ArrayForEach(c, json_find(object, CONDITIONS))
        {
            const char *type = json_str(c, "type"), *status = json_str(c, "status");
            suspect |= type && status && !strcmp(type, "Ready") && strcmp(status, "True") != 0;
        }
        if (!node || !suspect || n == NODES_MAX || finding_object(g->facts.nodes, node))
            continue;
        n++;
        if (!get(g, &NODES, node, &g->facts.nodes))
            return;
    }
}

static void read_claims(struct collected *g, const cJSON *pod)
{
    const char *pod_name = json_meta(pod, "name");
    char claim_name[2 * DECODE_NAME_BYTES + 2];
    const cJSON *volume, *claim;
    int n = 0;

    cJSON_ArrayForEach(volume, json_find(pod, (const char *[]){"spec", "volumes", NULL}))
    {
        const char *name = json_str(json_child(volume, "persistentVolumeClaim"), "claimName");
        const char *own = json_str(volume, "name");
        if (own && pod_name && json_child(volume, "ephemeral")) {
            snprintf(claim_name, sizeof(claim_name), "%.*s-%.*s", DECODE_NAME_BYTES, pod_name,
                     DECODE_NAME_BYTES, own);
            name = claim_name;
        }
        if (name && n++ < CLAIMS_MAX && !get(g, &CLAIMS, name, &g->facts.claims))
            return;
    }
    cJSON_ArrayForEach(claim, g->facts.claims)
    {
        const char *phase = json_str(json_child(claim, "status"), "phase");
        const char *name = json_meta(claim, "name");
        if (name && phase && strcmp(phase, "Bound") != 0 && !events_of(g, name))
            return;
    }
}

/* The pod that the finding is about; of a job that just starts, the first that does not run. */
static const cJSON *pod_in_question(const struct collected *g, const struct finding *f)
{
    const cJSON *named = finding_object(g->facts.pods, f->pod), *object;

    if (named)
        return named;
    cJSON_ArrayForEach(object, g->facts.pods)
    {
        const char *phase = json_str(json_child(object, "status"), "phase");
        if (phase && !strcmp(phase, "Pending"))
            return object;
    }
    return NULL;
}

/* A pod of that name may be another one by now. */
static void read_log(struct collected *g, const struct finding *f, const cJSON *pod)
{
    const char *uid = json_meta(pod, "uid");
    const char *container = json_str(pod_training_container(pod), "name");
    struct podlog log = {.pod = f->pod,
                         .container = f->container ? f->container : container,
                         .tail = WHY_LOG_LINES,
                         .limit = WHY_LOG_BYTES};
    struct err err;

    if (f->kind != WHY_FAILURE || !uid || !f->uid || strcmp(uid, f->uid) != 0 || !log.container)
        return;
    if (podlog_read(g->session, &log, &g->log, &err) == 0)
        g->facts.log = buf_str(&g->log);
    else if (err.code != 404 && err.code != 400) /* the container never started, or its log is gone */
        add_gap(g, "the pod's log", &err);
}

/* Of a job in a queue of Kueue. It is no gap if that does not answer, or not to this user. */
static void read_place(struct collected *g)
{
    static const struct kube_resource QUEUES = {"visibility." WORKLOAD_GROUP, WORKLOAD_VERSION, "localqueues",
                                                "LocalQueue", false};
    const struct kube_request r = {.verb = KUBE_GET,
                                   .resource = &QUEUES,
                                   .ns = g->session->ns,
                                   .name = g->job->queue.name,
                                   .subresource = "pendingworkloads"};
    const cJSON *item, *owner;
    struct err ignored;

    if (!r.name || g->job->status.start_ms || jobstatus_finished(&g->job->status) ||
        session_call(g->session, &r, &g->pending, &ignored) < 0)
        return;
    cJSON_ArrayForEach(item, json_child(g->pending, "items"))
    {
        cJSON_ArrayForEach(owner, json_find(item, (const char *[]){"metadata", "ownerReferences", NULL}))
        {
            const char *uid = json_str(owner, "uid");
            if (uid && strcmp(uid, g->job->uid) == 0 && json_i64(item, "positionInClusterQueue", -1) >= 0)
                g->facts.pending = item;
        }
    }
}

int collect(struct collected *g, struct session *s, const char *job, struct err *err)
{
    cleanup_arena struct arena a = {0};
    cJSON *tree;

    *g = (struct collected){.session = s, .log = BUF_INIT(KUBE_TRANSPORT_BODY_MAX_BYTES)};
    if (session_job(s, job, &tree, err) < 0 || !(g->job = trainjob_decode(tree, err)))
        return -1;
    g->facts.job = g->job;
    g->facts.options = buf_str(&s->options);
    g->facts.now_ms = kube_loop_wall_ms(s->loop);
    read_pods(g);
    read_nodes(g);
    read_place(g);
    const struct finding first = finding_of(&g->facts, &a);
    const cJSON *pod = pod_in_question(g, &first);
    const char *name = json_meta(pod, "name");
    name = name ? name : first.pod; /* the events of one that is gone stay for an hour */
    if (events_of(g, g->job->name) && name && events_of(g, name) && !jobstatus_finished(&g->job->status))
        read_claims(g, pod);
    if (g->job->status.phase == JOB_RUNNING)
        (void)list(g, (struct kube_request){.verb = KUBE_LIST, .resource = &BUDGETS, .ns = s->ns},
                   &g->facts.budgets);
    if (pod)
        read_log(g, &first, pod);
    return 0;
}

void collect_release(struct collected *g)
{
    trainjob_free(g->job);
    cJSON_Delete(g->facts.pods);
    cJSON_Delete(g->facts.events);
    cJSON_Delete(g->facts.claims);
    cJSON_Delete(g->facts.nodes);
    cJSON_Delete(g->facts.budgets);
    cJSON_Delete(g->pending);
    buf_release(&g->log);
}

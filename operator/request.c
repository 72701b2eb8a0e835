/* request.c - turn an action of a plan into an API request. */
#include "operator/request.h"

const struct kube_resource TRAINJOBS = {TRAINJOB_GROUP, TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND,
                                        false};

const struct kube_resource *request_resource(enum child_kind child)
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

struct kube_request request_of(const struct action *act, const char *ns, struct arena *a)
{
    static const enum kube_verb VERBS[] = {
        [ACTION_STATUS] = KUBE_PATCH,  [ACTION_CHECK] = KUBE_GET,   [ACTION_DELETE] = KUBE_DELETE,
        [ACTION_CREATE] = KUBE_CREATE, [ACTION_PATCH] = KUBE_PATCH, [ACTION_EVENT] = KUBE_GET,
    };
    struct kube_request r = {.verb = VERBS[act->kind], .resource = request_resource(act->child), .ns = ns};

    r.name = act->kind == ACTION_CREATE ? NULL : act->name;
    r.subresource = act->kind == ACTION_STATUS ? "status" : NULL;
    if (act->body)
        r.body = sv_from(act->body);
    if (act->kind == ACTION_CREATE || act->kind == ACTION_PATCH || act->kind == ACTION_STATUS)
        r.field_manager = "ptj-operator";
    if (act->kind == ACTION_CREATE && act->child == CHILD_POD)
        r.field_validation = "Strict"; /* a field of the template that the server does not know */
    if (act->kind == ACTION_DELETE)
        r.body = kube_delete_options(a, act->uid, act->version, "Background", act->force ? 0 : -1);
    return r;
}

/* request.h - build the HTTP request for a Kubernetes verb and its parameters. Pure.
 *
 * Ownership: the result lives in the arena; bodies are borrowed.
 * Errors:    ERR_INVALID: no name where the verb needs one, a part of the path that is not a name, or a path
 *            of over 16 KiB. Parameters that do not belong to the verb are not checked.
 */
#ifndef TK_KUBE_REQUEST_H
#define TK_KUBE_REQUEST_H

#include "common/arena.h"
#include "kube/transport.h"

#include <stdbool.h>

enum {
    /* Limit of an object's JSON; the same for a watch and a GET. */
    KUBE_OBJECT_MAX_BYTES = 3 << 20,
    /* Limit of the answer to a write: of a longer answer the names are enough. */
    KUBE_WRITE_ANSWER_BYTES = 512 << 10,
};

struct kube_resource {
    const char *group; /* "" for core */
    const char *version;
    const char *plural;
    const char *kind;
    bool cluster_scoped;
};

extern const struct kube_resource KUBE_PODS, KUBE_SERVICES, KUBE_CONFIGMAPS, KUBE_EVENTS, KUBE_DEPLOYMENTS,
    KUBE_SECRETS, KUBE_NETWORK_POLICIES, KUBE_LEASES;

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_WATCH,
    KUBE_CREATE,
    KUBE_UPDATE, /* PUT */
    KUBE_PATCH,  /* JSON merge patch */
    KUBE_APPLY,  /* server-side apply, which takes the fields from other managers */
    KUBE_DELETE,
};

/* NULL, 0 and false mean not set. */
struct kube_request {
    enum kube_verb verb;
    const struct kube_resource *resource;
    const char *ns;          /* NULL: all namespaces (list, watch), or a cluster-scoped resource */
    const char *name;        /* required by all but list, watch, create */
    const char *subresource; /* "status", "scale" */
    const char *label_selector;
    const char *field_selector;
    const char *resource_version; /* watch: from here on */
    const char *continue_token;   /* list: the next page */
    const char *field_manager;    /* create, update, patch */
    const char *field_validation; /* create: "Strict" or "Ignore"; NULL: the server's default */
    int limit;                    /* list: items per page */
    int timeout_s;                /* watch: the server ends it after this */
    bool bookmarks;               /* watch */
    bool later;                   /* low priority: see transport.h */
    struct sv body;               /* JSON; create, update, patch, delete */
};

/* Also sets the timeout and the limit of the answer: TRANSPORT_* of transport.h or those above; a watch has
 * no timeout. */
int kube_request_build(const struct kube_request *r, struct arena *a, struct kube_http_request *out,
                       struct err *err) MUST_CHECK;

/* A DeleteOptions body, which lets children be deleted in the background. uid and resource_version: NULL if not
 * set. at_once: without the grace period. */
struct sv kube_delete_options(struct arena *a, const char *uid, const char *resource_version, bool at_once);

#endif

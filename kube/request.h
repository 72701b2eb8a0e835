/* request.h - from a verb and its parameters to an HTTP request. Pure.
 *
 * Ownership: the result lives in the arena; bodies are borrowed.
 * Errors:    ERR_INVALID, naming the parameter that is missing or does not fit the verb.
 */
#ifndef TK_KUBE_REQUEST_H
#define TK_KUBE_REQUEST_H

#include "common/arena.h"
#include "kube/transport.h"

#include <stdbool.h>

enum {
    KUBE_OBJECT_MAX_BYTES =
        3 << 20, /* of an object's JSON that is read: the same from a watch and from a GET */
    KUBE_WRITE_ANSWER_BYTES = 512 << 10, /* of the answer to a write: of a longer one the names are enough */
};

struct kube_resource {
    const char *group; /* "" for core */
    const char *version;
    const char *plural;
    const char *kind;
    bool cluster_scoped;
};

extern const struct kube_resource KUBE_PODS, KUBE_SERVICES, KUBE_CONFIGMAPS, KUBE_EVENTS, KUBE_DEPLOYMENTS,
    KUBE_LEASES;

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_WATCH,
    KUBE_CREATE,
    KUBE_UPDATE, /* PUT */
    KUBE_PATCH,  /* JSON merge patch */
    KUBE_DELETE,
};

/* Fields that do not belong to the verb are refused; NULL, 0 and false mean not given. */
struct kube_request {
    enum kube_verb verb;
    const struct kube_resource *resource;
    const char *ns;          /* NULL: all namespaces (list, watch), or a cluster-scoped resource */
    const char *name;        /* needed by all but list, watch, create */
    const char *subresource; /* "status", "scale" */
    const char *label_selector;
    const char *field_selector;
    const char *resource_version; /* list: not older than; watch: from here */
    const char *continue_token;   /* list: the next page */
    const char *field_manager;    /* create, update, patch */
    int limit;                    /* list: items per page */
    int timeout_s;                /* watch: the server ends it after so long */
    bool bookmarks;               /* watch */
    bool initial_events; /* watch: all there is first, then a bookmark that says so; needs bookmarks */
    bool later;          /* nobody waits for it: see transport.h */
    struct sv body;      /* JSON; create, update, patch, delete */
};

/* Timeouts are transport.h's, limits its own or those above; a watch gets no timeout. */
int kube_request_build(const struct kube_request *r, struct arena *a, struct kube_http_request *out,
                       struct err *err) MUST_CHECK;

/* A DeleteOptions body; uid, resource_version, propagation ("Foreground", "Background", "Orphan") may be NULL
 * and grace_s negative: not given. */
struct sv kube_delete_options(struct arena *a, const char *uid, const char *resource_version,
                              const char *propagation, int64_t grace_s);

#endif

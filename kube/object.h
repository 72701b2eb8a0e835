/* object.h - what controllers do with objects of any kind: finalizers, owner references, deletion. Pure.
 *
 * Ownership: objects are borrowed; a result that is returned as a cJSON tree or as text is the caller's.
 */
#ifndef TK_KUBE_OBJECT_H
#define TK_KUBE_OBJECT_H

#include "common/cleanup.h"
#include "common/sv.h"
#include "kube/request.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>

/* A string as the body of a request. */
static inline struct sv kube_text(const char *text)
{
    return (struct sv){text, strlen(text)};
}

/* metadata.deletionTimestamp is set: only finalizers keep the object. */
bool kube_object_is_deleting(const cJSON *object);

bool kube_object_has_finalizer(const cJSON *object, const char *finalizer);

/* The JSON merge patch (KUBE_PATCH) that gives the object the finalizer, or takes it away. It holds the object's resourceVersion:
 * when others changed the object meanwhile the server answers 409 (ERR_CONFLICT), and the list of finalizers is not lost.
 * NULL: nothing to change. Free with free(). */
char *kube_object_finalizer_patch(const cJSON *object, const char *finalizer, bool present) MUST_CHECK;

/* An entry for metadata.ownerReferences of a child: `owner` is its controller, and the child goes when the owner does. The
 * owner must be in the child's namespace or cluster-scoped. Items of a list lack apiVersion and kind, so both come from
 * `resource`. Free with cJSON_Delete, or give it to the child's tree. */
cJSON *kube_object_owner_reference(const cJSON *owner, const struct kube_resource *resource) MUST_CHECK;

#endif

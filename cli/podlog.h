/* podlog.h - build the request for a container's log, which is text and no object. For the verbs logs and why.
 *
 * Ownership: the result lives in the arena.
 * Errors:    those of kube/request.h.
 */
#ifndef TK_CLI_PODLOG_H
#define TK_CLI_PODLOG_H

#include "cli/session.h"

#include "common/buf.h"

struct podlog {
    const char *pod, *container;
    const char *since; /* RFC 3339; NULL: from the beginning */
    int64_t since_s;   /* of the last so many seconds; 0: all */
    int64_t tail;      /* the last so many lines; -1: all */
    bool follow;
    bool times;    /* each line begins with its time and a space */
    int64_t limit; /* bytes; 0: none */
};

/* The permission that it needs, for session_explain. */
struct kube_request podlog_right(const struct session *s, const struct podlog *l);

/* Of a follow neither the whole nor a silence is timed, of others a silence is: who reads the output may be slow. */
int podlog_request(const struct session *s, const struct podlog *l, struct arena *a,
                   struct kube_http_request *out, struct err *err) MUST_CHECK;

/* Send it and wait for its end, for KUBE_TRANSPORT_TIMEOUT_MS at most. */
int podlog_read(struct session *s, const struct podlog *l, struct buf *ret, struct err *err) MUST_CHECK;

#endif

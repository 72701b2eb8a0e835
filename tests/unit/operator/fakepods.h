/* fakepods.h - test helper: an HTTP server on loopback in the caller's own event loop, for pods that answer, or do worse.
 *
 * The path of a request selects the pod: fakepods_url makes the path from the text that stands for the pod's address.
 * Ownership: one at a time per program, since the seam of poller.h has no context.
 */
#ifndef TK_TESTS_OPERATOR_FAKEPODS_H
#define TK_TESTS_OPERATOR_FAKEPODS_H

#include "kube/loop.h"
#include "operator/podaddress.h"

enum { FAKEPODS_CONNECTIONS = 64, FAKEPODS_BYTES = 8192 };

enum fakepods_end {
    FAKEPODS_CLOSES,  /* after the bytes */
    FAKEPODS_WAITS,   /* silent after the bytes; the connection stays */
    FAKEPODS_REPEATS, /* the bytes again, for ever */
};

struct fakepods_reply {
    enum fakepods_end end;
    char first[FAKEPODS_BYTES]; /* sent once */
    char rest[FAKEPODS_BYTES];  /* sent then, with FAKEPODS_REPEATS again and again */
};

struct fakepods_connection {
    struct fakepods *of;
    struct kube_loop_fd fd; /* fd -1: free */
    char request[1024];
    size_t len;
    bool answering;
    struct fakepods_reply reply;
    size_t sent; /* of first and rest; of rest after the first time */
};

struct fakepods {
    struct kube_loop *loop;
    /* Fill *ret for this path, which has no slash at its beginning. */
    void (*answer)(void *ctx, const char *path, struct fakepods_reply *ret);
    void *ctx;
    struct kube_loop_fd listener;
    struct fakepods_connection connections[FAKEPODS_CONNECTIONS];
    int requests, open, open_max;
    size_t sent;     /* bytes of all answers */
    char last[1024]; /* the last request, whole */
};

/* With loop, answer and ctx set. */
void fakepods_start(struct fakepods *f);
void fakepods_stop(struct fakepods *f);

/* The seam of poller.h, for the server that was started last. */
bool fakepods_url(const char *ip, char url[static PODADDRESS_URL_BYTES]);

/* "HTTP/1.1 200 OK ... {...}" with this body. */
void fakepods_say(struct fakepods_reply *ret, const char *body);

#endif

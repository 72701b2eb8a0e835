/* podget.h - one GET of a small document from a server that is not trusted, over libcurl; used again and again.
 *
 * http only, no redirect, no proxy, no credential, no cookie, no answer longer than PODGET_BYTES or with more than
 * PODGET_HEADER_BYTES of headers, and no exchange longer than PODGET_TIMEOUT_MS. Only a 200 is an answer. The connection is
 * closed after it: an idle one to each of many pods would cost both sides more than a new one each time.
 *
 * Ownership: borrows the loop. podget_release ends an exchange without `done`.
 * Order:     podget_start, then `done` from the loop, exactly once, unless released. The body is borrowed for that call.
 * Errors:    no error is reported: `done` gets a NULL body.
 */
#ifndef TK_OPERATOR_PODGET_H
#define TK_OPERATOR_PODGET_H

#include "common/sv.h"
#include "kube/loop.h"

enum { PODGET_BYTES = 4096, PODGET_HEADER_BYTES = 8192, PODGET_TIMEOUT_MS = 2000 };

struct podget {
    struct kube_loop *loop;
    void (*done)(void *ctx, struct podget *g, const struct sv *body); /* body NULL: no answer */
    void *ctx;
    void *easy; /* CURL; NULL until the first exchange */
    struct kube_loop_transfer transfer;
    bool running;
    char body[PODGET_BYTES];
    size_t len, header_bytes;
};

/* A zeroed one with loop, done and ctx is ready for use. False: it did not begin, and `done` is not called. */
bool podget_start(struct podget *g, const char *url);
void podget_release(struct podget *g);

#endif

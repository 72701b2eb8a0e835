/* podget.h - a reusable GET of a small document from an untrusted server, over libcurl.
 *
 * http only, no redirect, proxy, credential or cookie. Limits: PODGET_BYTES of body, PODGET_HEADER_BYTES of
 * headers, PODGET_TIMEOUT_MS for the exchange. Only a 200 counts as an answer. It closes the connection after
 * each exchange: idle connections to many pods would cost both sides more than new ones.
 *
 * Ownership: borrows the loop. podget_release ends an exchange without `done`.
 * Order:     podget_start, then `done` from the loop, exactly once, unless released. The body is borrowed for
 *            that call.
 * Errors:    after any failure `done` gets a NULL body.
 */
#ifndef TK_OPERATOR_PODGET_H
#define TK_OPERATOR_PODGET_H

#include "common/sv.h"
#include "kube/loop.h"

enum { PODGET_BYTES = 4096, PODGET_HEADER_BYTES = 8192, PODGET_TIMEOUT_MS = 2000 };

struct podget {
    struct kube_loop *loop;
    void (*done)(void *ctx, const struct sv *body); /* body NULL: no answer */
    void *ctx;
    void *easy; /* CURL; NULL until the first exchange */
    struct kube_loop_transfer transfer;
    bool running;
    char body[PODGET_BYTES];
    size_t len, header_bytes;
};

/* A zeroed struct with loop, done and ctx set is ready for use. False: it did not begin, and `done` is not
 * called. */
bool podget_start(struct podget *g, const char *url);
void podget_release(struct podget *g);

#endif

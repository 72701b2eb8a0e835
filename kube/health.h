/* health.h - a small HTTP/1.1 server in the event loop for /healthz, /readyz and /metrics; GET and HEAD only.
 *
 * Ownership: borrows the loop and the pages.
 * Limits:    64 connections, 4 KiB of request, 1 MiB of answer. A client that takes more than 5 s is dropped.
 *            When the table is full, a new connection replaces the oldest one as soon as that is 100 ms old.
 * Errors:    ERR_INVALID (the address), ERR_FATAL (the socket; code = errno).
 */
#ifndef TK_KUBE_HEALTH_H
#define TK_KUBE_HEALTH_H

#include "common/buf.h"
#include "kube/loop.h"

enum { HEALTH_CLIENTS_MAX = 64 };

struct health;

struct health_page {
    const char *path; /* "/healthz" */
    /* Append the body and return the HTTP status. */
    int (*get)(void *ctx, struct buf *body);
    void *ctx;
    const char *content_type; /* NULL: text/plain; charset=utf-8 */
};

/* address: ":8081" (all addresses), "127.0.0.1:0" or "[::1]:8081". The pages outlive the listener. */
struct health *health_new(struct kube_loop *l, const char *address, const struct health_page *pages,
                          size_t n_pages, struct err *err) MUST_CHECK;
void health_free(struct health *h);

/* The port: that of the address, or the one that the kernel chose for 0. */
int health_port(const struct health *h);

static inline void health_freep(struct health **h)
{
    health_free(*h);
}
#define cleanup_health __attribute__((cleanup(health_freep)))

#endif

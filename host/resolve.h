/* resolve.h - resolve a host name, and connect to it, before a deadline. getaddrinfo has no deadline, and
 * takes 10 s or more when a name server does not answer, so a separate thread calls it.
 *
 * Ownership: resolver_free frees a resolver; the thread of an unfinished lookup frees it at its end.
 *            The caller owns *ret and frees it with freeaddrinfo.
 * Threads:   one thread uses a resolver at a time. A resolver has at most one lookup in progress: keep the
 *            resolver for retries, so that lookups do not pile up.
 * Units:     deadlines are milliseconds of the monotonic clock; with a past deadline a call checks without
 *            waiting.
 */
#ifndef TK_HOST_RESOLVE_H
#define TK_HOST_RESOLVE_H

#include "common/cleanup.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct resolver;

/* Numeric addresses are resolved without a thread. */
struct resolver *resolver_new(const char *host, int port);

/* For tests: a replacement for getaddrinfo, with `arg` as its first argument; called from a thread. */
typedef int resolver_lookup(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **ret);
struct resolver *resolver_new_with(const char *host, int port, resolver_lookup *lookup, void *arg);

/* 1: *ret has the addresses. 0: the deadline passed; call again to wait for the same lookup. -1: the host
 * cannot be resolved now. After 1 and -1 the next call starts a new lookup. */
int resolver_wait(struct resolver *r, int64_t deadline_ms, struct addrinfo **ret) MUST_CHECK;

/* The C library's message for the last failed lookup or connection; *unresolved: the lookup failed. */
const char *resolver_why(const struct resolver *r, bool *unresolved);

/* Look a name up with `look`. If a name with a dot is not found, try it in each search domain of `conf`, a
 * resolv.conf: musl does not when the name has at least `ndots` dots. */
int resolver_search(const char *conf, resolver_lookup *look, void *arg, const char *host, const char *service,
                    const struct addrinfo *hints, struct addrinfo **ret);

/* Accepts NULL. */
void resolver_free(struct resolver *r);

/* Connect by TCP to the first of the host's addresses that answers. Each address gets its share of the
 * remaining time, at most 3 s. Returns a descriptor, non-blocking and close-on-exec. -1: none answered before
 * the deadline. One try. */
int resolver_dial(struct resolver *r, int64_t deadline_ms) MUST_CHECK;

static inline void resolver_freep(struct resolver **r)
{
    resolver_free(*r);
}
#define cleanup_resolver __attribute__((cleanup(resolver_freep)))

#endif

/* resolve.h - the addresses of a host, before a deadline. The system's resolver knows none: with a name server that does
 * not answer it takes 10 s and more, so a thread of its own waits for it.
 *
 * Ownership: resolver_new gives one that resolver_free ends. A lookup that is still under way then is left behind; it ends
 *            by itself and frees what it holds. *ret is the caller's, freed by freeaddrinfo.
 * Threads:   one thread uses a resolver at a time. At most one lookup per resolver is under way: keep the resolver while
 *            trying again, and tries in vain do not pile up.
 * Units:     deadlines are milliseconds of the monotonic clock; one that has passed looks and does not wait.
 */
#ifndef TK_COMMON_RESOLVE_H
#define TK_COMMON_RESOLVE_H

#include "common/cleanup.h"

#include <netdb.h>
#include <stdint.h>

struct resolver;

/* Numeric addresses need no thread. */
struct resolver *resolver_new(const char *host, int port);

/* With another lookup than the system's, for tests: as getaddrinfo, with `arg` first; called from a thread. */
typedef int resolver_lookup(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **ret);
struct resolver *resolver_new_with(const char *host, int port, resolver_lookup *lookup, void *arg);

/* 1: *ret has the addresses of a lookup that was not answered before; 0: the deadline passed, ask again; -1: there is no
 * such host, now. */
int resolver_ask(struct resolver *r, int64_t deadline_ms, struct addrinfo **ret) MUST_CHECK;

/* Accepts NULL. */
void resolver_free(struct resolver *r);

/* A TCP connection to the first of the host's addresses that answers, each having its share of the time left: a
 * descriptor, non-blocking and close-on-exec. -1 when none does before the deadline (yet). One try. */
int resolver_dial(struct resolver *r, int64_t deadline_ms) MUST_CHECK;

static inline void resolver_freep(struct resolver **r)
{
    resolver_free(*r);
}
#define cleanup_resolver __attribute__((cleanup(resolver_freep)))

#endif

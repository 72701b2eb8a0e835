/* resolve.h - resolve a host name, and connect to it, before a deadline. getaddrinfo has no deadline, and
 * takes 10 s or more when a name server does not answer, so a thread of its own calls it.
 *
 * Ownership: resolver_free frees a resolver. A lookup still under way is left to its thread, which frees it
 *            at its end. *ret is the caller's, freed by freeaddrinfo.
 * Threads:   one thread uses a resolver at a time. A resolver has at most one lookup under way: keep it for
 *            retries, so that lookups do not pile up.
 * Units:     deadlines are milliseconds of the monotonic clock; with a past one a call checks without
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

/* For tests: another lookup than the system's; as getaddrinfo, with `arg` first; called from a thread. */
typedef int resolver_lookup(void *arg, const char *host, const char *service, const struct addrinfo *hints,
                            struct addrinfo **ret);
struct resolver *resolver_new_with(const char *host, int port, resolver_lookup *lookup, void *arg);

/* 1: *ret has the addresses; 0: the deadline passed, ask again for the same lookup; -1: the host cannot be
 * resolved now. After 1 and -1 the next call looks up anew. */
int resolver_ask(struct resolver *r, int64_t deadline_ms, struct addrinfo **ret) MUST_CHECK;

/* Why the last lookup or connection failed, in the C library's words; *unresolved: it was the lookup. */
const char *resolver_why(const struct resolver *r, bool *unresolved);

/* Look a name up by `look`. Of a name with a dot that is not found each search domain of `conf`, a resolv.conf, is tried:
 * musl does not try them where the name has as many dots as ndots says. */
int resolver_search(const char *conf, resolver_lookup *look, void *arg, const char *host, const char *service,
                    const struct addrinfo *hints, struct addrinfo **ret);

/* Accepts NULL. */
void resolver_free(struct resolver *r);

/* Connect by TCP to the first of the host's addresses that answers; each gets its share of the time left, at
 * most 3 s. Returns a descriptor, non-blocking and close-on-exec; -1 when none answers before the deadline.
 * One try. */
int resolver_dial(struct resolver *r, int64_t deadline_ms) MUST_CHECK;

static inline void resolver_freep(struct resolver **r)
{
    resolver_free(*r);
}
#define cleanup_resolver __attribute__((cleanup(resolver_freep)))

#endif

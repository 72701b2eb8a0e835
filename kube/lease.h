/* lease.h - who leads: the rules of leader election on a Lease object. Pure: time and answers are arguments.
 *
 * The rules are client-go's. A lease that nobody renewed for its whole duration, counted on this machine's
 * monotonic clock from when its last change was seen here, may be taken; times written in the lease are for
 * people only, so clocks may differ and step. Every write names the resourceVersion that it was decided on. A
 * server's Retry-After is kept for half the renew deadline at most.
 * Ownership: lease_new copies its strings; lease_body's text lives in the arena. Answers are copied.
 * Units:     monotonic milliseconds; wall milliseconds only for the times written.
 * Order:     lease_next -> send it -> lease_sent -> lease_answer -> lease_next ...; one request at a time.
 */
#ifndef TK_KUBE_LEASE_H
#define TK_KUBE_LEASE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "kube/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LEASE_DURATION_MS = 15000,       /* others wait so long */
    LEASE_RENEW_DEADLINE_MS = 10000, /* we stop so long after the last renewal was sent */
    LEASE_RETRY_MS = 2000,
};

struct lease_options {
    const char *ns, *name;
    const char *identity;                             /* of this process alone: a restarted one has another */
    int64_t duration_ms, renew_deadline_ms, retry_ms; /* 0: the defaults above */
    uint64_t seed;                                    /* of the jitter between a candidate's looks */
};

enum lease_step { LEASE_WAIT, LEASE_READ, LEASE_CREATE, LEASE_WRITE };

struct lease;

struct lease *lease_new(const struct lease_options *options);
void lease_free(struct lease *l);

/* What to send now. LEASE_WAIT: nothing before lease_due_ms, or a request is under way. */
enum lease_step lease_next(struct lease *l, int64_t now_ms);
int64_t lease_due_ms(const struct lease *l); /* INT64_MAX: not before an answer, or never again */

/* The Lease for the step LEASE_CREATE or LEASE_WRITE. */
const char *lease_body(const struct lease *l, int64_t wall_ms, struct arena *a);

void lease_sent(struct lease *l, int64_t now_ms);

/* object: the Lease as it is now, NULL on failure. status: of the failure; its code 0: no answer came. */
void lease_answer(struct lease *l, const cJSON *object, const struct kube_status *status, int64_t now_ms);

/* Whether we lead. Without a renewal this ends by itself at lease_held_until_ms. */
bool lease_is_leader(const struct lease *l, int64_t now_ms);

/* Whether a write may be sent now: we lead, and nothing says that somebody else wrote the lease. */
bool lease_is_held(const struct lease *l, int64_t now_ms);
int64_t lease_held_until_ms(const struct lease *l); /* INT64_MIN: not leading */

/* Who holds it, as last seen; "" when nobody. */
const char *lease_holder(const struct lease *l);
bool lease_is_ours(const struct lease *l); /* as last seen; that is not enough to write: lease_is_held */

/* Give it up: from now on it is not held; one write tells the others not to wait, then every step is LEASE_WAIT. */
void lease_let_go(struct lease *l, int64_t now_ms);
bool lease_is_over(const struct lease *l); /* given up, and nothing is left to send */

#endif

/* lease.h - the rules of leader election on a Lease object: what to send next, and whether this process
 * leads. Pure: time and answers are arguments.
 *
 * The rules are those of client-go. A candidate may acquire a lease that was not renewed for its whole
 * duration. It measures that with its own clock (CLOCK_BOOTTIME, so suspended time counts), from the last
 * change of the lease that it saw. The times written in the lease are informational, so clocks may differ and
 * step. Every update carries the resourceVersion that it was decided on. A server's Retry-After is honoured
 * for half the renew deadline at most.
 * Ownership: borrows the strings of the options; lease_answer copies the object; lease_body's text lives in the arena.
 * Units:     milliseconds of that clock; wall milliseconds only for the times written.
 * Order:     lease_next -> send it -> lease_sent -> lease_answer -> lease_next ...; one request at a time.
 */
#ifndef TK_KUBE_LEASE_H
#define TK_KUBE_LEASE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "kube/apistatus.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LEASE_DURATION_MS = 15000,       /* other candidates wait so long after the last renewal */
    LEASE_RENEW_DEADLINE_MS = 10000, /* the leader stops this long after it sent its last renewal */
    LEASE_RETRY_MS = 2000,
};

struct lease_options {
    const char *ns, *name;
    const char *identity; /* of this process; another one after a restart */
    int64_t duration_ms;  /* LEASE_DURATION_MS, or another: the other times are in proportion to it */
    uint64_t seed;        /* of the jitter between a candidate's reads */
};

enum lease_step { LEASE_WAIT, LEASE_READ, LEASE_CREATE, LEASE_WRITE };

struct lease;

struct lease *lease_new(const struct lease_options *options);
void lease_free(struct lease *l);

/* The request to send now. LEASE_WAIT: none before lease_due_ms, or one is in flight. */
enum lease_step lease_next(struct lease *l, int64_t now_ms);
int64_t lease_due_ms(const struct lease *l); /* INT64_MAX: not before the answer, or never again */

/* The Lease for the step LEASE_CREATE or LEASE_WRITE. */
const char *lease_body(const struct lease *l, int64_t wall_ms, struct arena *a);

void lease_sent(struct lease *l, int64_t now_ms);

/* object: the Lease that the server returned; NULL on failure. status: of the failure; code 0: no answer. */
void lease_answer(struct lease *l, const cJSON *object, const struct kube_status *status, int64_t now_ms);

/* Whether this process leads. Without a renewal this ends at lease_held_until_ms. */
bool lease_is_leader(const struct lease *l, int64_t now_ms);

/* Whether a write may be sent now: this process leads, and no conflict shows that another process wrote the
 * lease. */
bool lease_is_held(const struct lease *l, int64_t now_ms);
int64_t lease_held_until_ms(const struct lease *l); /* INT64_MIN: not leading */

/* The holder last seen; "": none. */
const char *lease_holder(const struct lease *l);
bool lease_is_ours(const struct lease *l); /* as last seen; before a write check lease_is_held instead */

/* Release it. From now on it is not held. The next step is one write that lets another candidate acquire it
 * without waiting; after that every step is LEASE_WAIT. */
void lease_release(struct lease *l, int64_t now_ms);
bool lease_is_over(const struct lease *l); /* released, and nothing is left to send */

#endif

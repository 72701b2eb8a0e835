/* direct.h - the fake API server without sockets: a transport whose requests are carried out in the caller's own
 * thread, and whose watches can send events late, twice, merged or not at all.
 *
 * Ownership: borrows the server (of fake_apiserver_alone), the loop and the tampering; one client per loop. Calls
 *            that are under way when it is freed get no answer.
 * Units:     milliseconds of the loop's clock.
 * Order:     a request takes effect in the turn of the loop after its start, and is answered in the turn after
 *            that. Nothing depends on the machine's clock.
 */
#ifndef TK_TESTS_FAKES_DIRECT_H
#define TK_TESTS_FAKES_DIRECT_H

#include "kube/loop.h"
#include "kube/transport.h"
#include "tests/fakes/apiserver.h"

struct fake_direct;

enum fake_tampering {
    FAKE_TELL,         /* nothing is done to it */
    FAKE_CUT_BEFORE,   /* the stream breaks, and the event with it */
    FAKE_CUT_AFTER,    /* the stream breaks after the event */
    FAKE_REPEAT,       /* sent twice */
    FAKE_LATE,         /* this event and those after it in the stream come `late_ms` later */
    FAKE_MERGE,        /* left out when the same object changes again in the next `late_ms` */
    FAKE_GONE_STREAM,  /* an ERROR event 410 instead; all versions up to now are expired */
    FAKE_GONE_REQUEST, /* the stream breaks; the next watch of the kind is answered with HTTP 410 */
    FAKE_RAW,          /* `raw`, then the event */
    FAKE_RAW_END,      /* `raw` instead, and an orderly end */
    FAKE_HALF_CUT,     /* half of its line, then the stream breaks */
    FAKE_HALF_END,     /* half of its line, and an orderly end */
    FAKE_END,          /* an orderly end instead */
    FAKE_OLD,          /* the event, then an older state of another object: the version goes back */
};

/* Events are counted over all watches of all clients that share the plan. */
struct fake_tamper {
    int event; /* the n-th, from 1; 0: none */
    enum fake_tampering how;
    int64_t late_ms;
    const char *raw; /* borrowed; "@V" in it becomes a good resourceVersion, "@K" the kind that is watched */
    size_t raw_len;
    size_t piece_bytes; /* streams come in pieces of this size; 0: as they are sent */
    int seen, done;     /* written: events so far, and how often the plan struck */
    char told[64];      /* written: the event that was struck last, "pods/MODIFIED" */
    int repeats;        /* strike this many events in a row; 0 is 1 */
};

struct fake_direct *fake_direct_new(struct fake_apiserver *s, struct kube_loop *l,
                                    struct fake_tamper *tamper);
void fake_direct_free(struct fake_direct *d);
struct kube_transport fake_direct_transport(struct fake_direct *d);

/* Move changes into the watches. To be called between turns of the loop. */
void fake_direct_turn(struct fake_direct *d);

/* Answers and events handed to the loop since the beginning. */
unsigned long fake_direct_told(const struct fake_direct *d);

/* Whether it says that requests wait for each other (kube_transport_is_full); they are carried out at once even so. */
void fake_direct_fill(struct fake_direct *d, bool full);

/* While cut off, nothing that is sent arrives and nothing is answered; what was sent meanwhile, and requests that a
 * FAKE_HANG_BEFORE holds, arrive when the way is free again. */
void fake_direct_cut_off(struct fake_direct *d, bool cut_off);

#endif

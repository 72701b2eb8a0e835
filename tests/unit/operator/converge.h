/* converge.h - run one scenario to its end with one kind of trouble, and return how it ended.
 *
 * The end is compared with the scenario's text, which a run without trouble has to reach, too.
 * Errors: the test fails when a run does not end, sends too many requests, breaks a rule that holds at every moment, or
 *         ends later than bounds.h allows.
 */
#ifndef TK_TESTS_OPERATOR_CONVERGE_H
#define TK_TESTS_OPERATOR_CONVERGE_H

#include "lab.h"

enum { CONVERGE_TEXT_BYTES = 1024 };

/* Longer than any back-off of one failure and the seconds that the lab's clock skips. */
enum { CONVERGE_RETRY_AFTER_S = 10 };

struct scenario {
    const char *name;
    int replicas;
    const char *policy; /* members of spec after replicaSpecs */
    int (*script)(int attempt, int index);
    void (*meddle)(struct lab *l); /* what the user does meanwhile; NULL: nothing */
    const char *want;
    bool queued; /* by Kueue */
};

extern const struct scenario SCENARIOS[];
extern const size_t N_SCENARIOS;

/* The one of this name, which has to be there. */
const struct scenario *converge_scenario(const char *name);

/* What follows when the planned fault has struck. */
enum follows {
    FOLLOWS_NOTHING,
    FOLLOWS_CRASH,    /* the operator dies, a new one starts from nothing */
    FOLLOWS_TAKEOVER, /* the leader dies, the other one waits for the lease */
    FOLLOWS_CUT_OFF,  /* the leader receives and sends nothing for 25 s; then what it had sent arrives */
    FOLLOWS_HANDOVER, /* the leader gets SIGTERM */
};

/* What counts as one case of a fault class. */
enum counting {
    COUNTS_NOTHING,
    COUNTS_WRITES, /* each run in which a write was struck */
    COUNTS_EVENTS, /* each kind of object and type of event that was struck */
    COUNTS_ONCE,   /* the trouble, when all of its runs passed */
};

struct trouble {
    const char *name;
    const char *class; /* of tests/faults.goals */
    enum counting counting;
    struct fake_fault_plan fault; /* request 0: none */
    int64_t lasts_ms;             /* every request that fits `fault` is struck for so long; 0: one is */
    const char *told; /* then this stands in the job's status at the end of that; NULL: no matter */
    const char *only; /* the begin of the names of the scenarios that it is for; NULL: all */
    enum follows follows;
    struct fake_fault_plan then; /* when the first has struck, and counted from there; request 0: none */
    enum follows then_follows;
    int crash_at; /* dies when so many requests were carried out; 0: it does not */
    const char *
        stale_kind; /* and then, for a minute, its watch sends the state before its last `stale_by` changes */
    int stale_by;
    unsigned leave_out;   /* rules that do not hold here, enum fake_rules */
    bool stale_reconnect; /* it does not die, but its watches end and begin again */
    struct fake_tamper tamper;
    bool sockets;  /* real HTTP */
    bool unqueued; /* the job may run without its queue */
    int operators; /* 0 is 1 */
    /* What the user does when the last of the planned faults has struck, and then in each turn until it returns true. NULL:
     * nothing. */
    void (*act)(struct lab *l, const struct scenario *s);
    bool (*acted)(struct lab *l);
    int act_at; /* it acts when objects have changed so often, whatever the operator is doing; 0: not by that */
    bool ghosts; /* a create may take effect long after it was given up: what it leaves is not counted */
};

struct ending {
    char text[CONVERGE_TEXT_BYTES];
    char left[CONVERGE_TEXT_BYTES]; /* the same without what is gone again */
    bool struck;                    /* all that was planned happened */
    bool acted;                     /* and then the user did something */
    int64_t end_ms;                 /* of the lab's clock: the last change of an object */
    int64_t late_ms;                /* by how much that may be later than without the trouble (bounds.h) */
    size_t remembered;              /* jobs, by all operators */
    int requests;
    int meanwhile;     /* of them, while a fault lasted */
    int events;        /* that watches sent */
    char tampered[64]; /* the event: "pods/MODIFIED" */
    bool wrote;        /* what was struck, or done last before a crash, was a write */
};

/* The scenario's job, as its user creates it. */
void converge_submit(struct lab *l, const struct scenario *s);

void converge_run(const struct scenario *s, const struct trouble *t, struct ending *ret);

/* The same, and fails the test unless it ended as the scenario says; with ghosts, unless the same is left as after
 * `untroubled`. True: struck. */
bool converge_check(const struct scenario *s, const struct trouble *t, const struct ending *untroubled,
                    struct ending *ret);

/* Who has not heard yet that the user deleted the job may make children once more, which are collected again. */
bool converge_may_leave_ghosts(const struct scenario *s);

/* A run without any trouble, which has to end as the scenario says. */
struct ending converge_untroubled(const struct scenario *s, int operators);

enum { CONVERGE_EVENTS_MAX = 32 };

/* What a test's state points to. */
struct converge_row {
    const struct scenario *scenario;
    const struct trouble *trouble;
    const char *seed; /* argv[3]; NULL: none was given */
    /* A sweep tries point before + step, before + 2 * step ...: every one, or in short those of converge_step_in_short; under a
     * sanitizer every ninth, with FAULTS=full every third. Which one is first depends on scenario and trouble. */
    int before, step;
    int cases, passed; /* of the trouble's class */
    char events[CONVERGE_EVENTS_MAX][64];
    int n_events;
};

/* converge_check of one variant of the row's trouble, counted as a case of its class. */
bool converge_case(struct converge_row *row, const struct trouble *t, const struct ending *untroubled,
                   struct ending *ret);

/* Cases of *t, each at another place, until one is not struck; more than `enough` of them. *place is the member of *t that says
 * where; `each` of them in turn is tried, and what the row leaves out is left out besides. */
void converge_sweep(struct converge_row *row, struct trouble *t, int *place, int each, int enough);

/* 1 unless a program changes it before converge_main. */
extern int converge_step_in_short;

/* A cmocka main: one test for each pair of a scenario (all, or argv[1]) and a trouble (all, or argv[2]). */
int converge_main(int argc, char **argv, const struct trouble *troubles, size_t n,
                  void (*test)(void **state));
#define CONVERGE_MAIN(argc, argv, troubles, test)                                                            \
    converge_main(argc, argv, troubles, ARRAY_LEN(troubles), test)

#endif

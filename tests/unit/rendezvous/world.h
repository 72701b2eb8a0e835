/* world.h - launchers that meet in a simulated network, on simulated time: struct node and struct leader as they are, with the
 * bytes of their messages, and played ranks, processes, machines and connections.
 *
 * A connection keeps the order of its bytes; a cut network delays them; what a machine that lost its power was sent vanishes. All
 * that happens by chance follows from one seed. world_run judges while it runs: see enum world_fault in world.c for what it checks.
 */
#ifndef TK_TESTS_RENDEZVOUS_WORLD_H
#define TK_TESTS_RENDEZVOUS_WORLD_H

#include "rendezvous/awake.h"
#include "rendezvous/leader.h"
#include "rendezvous/node.h"

enum {
    WORLD_LAUNCHERS = 12,
    WORLD_WIRES = 160,
    WORLD_EVENTS = 24,
    WORLD_ROUNDS = 64,
    WORLD_ATTACK_LINKS = 512,
    WORLD_STRANGERS = 256, /* as in meet_wires.c: at a time, and of one address */
    WORLD_EACH = 16
};

#define WORLD_NEVER INT64_MAX

/* What may happen to launcher `who`; ms: for how long. */
enum world_kind {
    WORLD_START,
    WORLD_KILL,   /* SIGKILL: its kernel closes its connections */
    WORLD_CRASH,  /* its machine loses its power */
    WORLD_TERM,   /* SIGTERM */
    WORLD_STOP,   /* SIGSTOP, then SIGCONT */
    WORLD_CUT,    /* its cable is pulled out */
    WORLD_RESET,  /* its connections are reset at both ends */
    WORLD_FORGET, /* a NAT forgets its connections */
    WORLD_FAIL,   /* one of its ranks ends with 1 */
    WORLD_HANG,   /* its ranks stand still, and with them all others */
    WORLD_NARROW, /* long packets to it are lost, and all behind them on the same connection */
};

struct world_event {
    int64_t at_ms, ms;
    enum world_kind kind;
    int who;
};

struct packet;

struct wire {
    bool used, local, node_open, leader_open, dead;
    bool stuck;     /* a packet to the node was lost for good */
    bool fake;      /* an attacker answers instead of the leader */
    int node, host; /* launchers */
    uint32_t number;
    int link; /* -1: not accepted yet */
    struct packet *first[2], *last[2];
    int flying[2];
    int64_t last_ms[2];
};

struct launcher {
    bool started, alive, hosts, leads, late;
    enum { KEY_OF_RUN, KEY_OTHER, KEY_NONE } key;
    int64_t stopped_until_ms, cut_until_ms, narrow_until_ms, lag_ms, grace_ms;
    struct awake awake;
    struct node node;
    struct leader leader;
    int exit_code; /* -1: it did not end by itself */
    int64_t ended_ms;
    int signal;
    /* Its ranks. */
    bool running, stopping, stuck, bad;
    int64_t round, ranks_end_ms, quiet_ms, told_done;
    int code, unsure;
    int starts; /* rounds that it has started */
    int64_t stepped_ms;
};

/* A round of a leader, as its members began it. */
struct world_round {
    int leader;                       /* launcher that leads; -1: free */
    int64_t round, began_ms, done_ms; /* done_ms: all its ranks have ended well; 0: not */
    int n, started, good;
    bool broken;
    int64_t tickets[WORLD_LAUNCHERS];
};

/* attack.h: what was sniffed, and the connections to the leader of launcher `host`. */
struct world_attack {
    int most;         /* open at a time; 0: nobody attacks the leader */
    bool at_endpoint; /* nodes that dial meet the attacker at times */
    int host;
    struct message hello, challenge, answer; /* type 0: none yet */
    struct world_attack_link {
        bool open, owes; /* owes: an answer to `heard` */
        int kind;
        struct message_hello said;
        struct message_challenge heard;
    } links[WORLD_ATTACK_LINKS];
};

struct world {
    uint64_t random;
    int64_t now_ms;
    struct quorum_config quorum;
    struct jobkey key;
    struct world_attack attack;
    int64_t stop_ms; /* what ranks need to stop, at most */
    int64_t work_ms,
        progress_ms; /* of a round; without a sign of life a launcher reports it after progress_ms, 0: never */
    struct launcher launchers[WORLD_LAUNCHERS];
    struct wire wires[WORLD_WIRES];
    struct world_event events[WORLD_EVENTS];
    int n_events, n_launchers;
    struct world_round rounds[WORLD_ROUNDS];
    int n_rounds;
    int host;           /* the launcher that listens at the endpoint; -1: nobody */
    int64_t trouble_ms; /* when the last fault is over */
    const char *wrong;  /* what the judge found; NULL: nothing */
    struct meeting_state decoded;
};

void world_init(struct world *w, uint64_t seed, const struct quorum_config *q, int launchers);
void world_add(struct world *w, enum world_kind kind, int who, int64_t at_ms, int64_t ms);
/* Until all have ended that can, or the time has passed; false: something is wrong. */
bool world_run(struct world *w, int64_t limit_ms);
void world_release(struct world *w);

uint64_t world_draw(struct world *w, uint64_t below);
/* The time for this launcher's node and leader. */
int64_t world_now(const struct world *w, const struct launcher *p);

#endif

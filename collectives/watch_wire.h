/* watch_wire.h - the protocol between the ranks (watch.c) and the watch (watch_*.c) over TCP.
 *
 * A message is a struct watch_head and `len` bytes of body. Numbers are in native byte order: the first message
 * carries a magic number, by which the watch refuses machines of another byte order, and the run id, by which
 * it refuses processes of other runs. If the job has a key, both sides then prove it (pass.h), and ignore
 * other messages before that. */
#ifndef TK_COLLECTIVES_WATCH_WIRE_H
#define TK_COLLECTIVES_WATCH_WIRE_H

#include "collectives/pass.h"
#include "collectives/pod_layout.h"

/* Random bytes of the token, by which ranks accept links; the longest text; the longest message
 * from a rank. */
enum { WATCH_TOKEN_BYTES = JOBKEY_PROOF_BYTES, WATCH_TEXT_BYTES = 200, WATCH_SAID_BYTES = 512 };

enum watch_type {
    WATCH_REGISTER = 1, /* rank to watch: struct watch_register */
    WATCH_REFUSED,      /* watch to rank: kind, body: why the registration is refused */
    WATCH_GO,           /* watch to rank: all have registered; body: struct watch_go */
    WATCH_REPORT,       /* rank to watch: it has reached call `seq` */
    WATCH_QUERY, /* rank to watch: which ranks have not reached call `seq`? watch to rank: which call have you reached? */
    WATCH_ANSWER,    /* watch to rank: body: their numbers as text, empty: none */
    WATCH_LEAVE,     /* both directions: `rank` closes its table, after `seq` calls */
    WATCH_LOST,      /* watch to rank: `rank` has disconnected without WATCH_LEAVE */
    WATCH_FAIL,      /* both directions: the table of `rank` failed in call `seq`: kind, body: why */
    WATCH_AWAIT,     /* as WATCH_REGISTER, from a waiting rank: it waits for WATCH_END */
    WATCH_AWAITED,   /* watch to waiting rank: registered; seq: rank 0's restart count */
    WATCH_END,       /* watch to waiting rank: the run has ended; kind: its exit status */
    WATCH_CHALLENGE, /* watch to rank, after its first message, with a key: struct watch_challenge */
    WATCH_PROOF,     /* rank to watch, after WATCH_CHALLENGE: its proof */
};

struct watch_head {
    uint32_t type;
    uint32_t rank;
    uint64_t seq;
    uint32_t kind; /* enum err_kind, or as the type says */
    uint32_t len;
};

struct watch_register {
    uint64_t magic;
    uint32_t version;
    uint32_t world;
    char run_id[PASS_RUN_ID_BYTES];
    struct rank_member member; /* the watch fills in addr */
    uint32_t has_key, pad;
    uint8_t nonce[JOBKEY_NONCE_BYTES]; /* with a key */
};

/* The first message of a rank. The proofs cover it, and the watch's nonce. */
struct watch_first {
    struct watch_head head;
    struct watch_register body;
};

struct watch_challenge {
    uint8_t nonce[JOBKEY_NONCE_BYTES];
    uint8_t proof[JOBKEY_PROOF_BYTES]; /* the watch's */
};

struct watch_go {
    uint8_t token[WATCH_TOKEN_BYTES];
    struct rank_member members[]; /* [world] */
};

static const uint64_t WATCH_MAGIC = 0x3168637461774b54; /* "TKwatch1" */
enum { WATCH_VERSION = 6 };

#endif

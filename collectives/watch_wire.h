/* watch_wire.h - what ranks and the watch at rank 0 say to each other.
 *
 * A message is a head and `len` bytes. Numbers are in the machine's own order: the first message carries a magic number,
 * by which a machine of another order, or a stranger, is known.
 */
#ifndef TK_COLLECTIVES_WATCH_WIRE_H
#define TK_COLLECTIVES_WATCH_WIRE_H

#include "collectives/layout.h"

enum { WATCH_TOKEN_BYTES = 16, WATCH_TEXT_BYTES = 200, WATCH_SAID_BYTES = 512 };

enum watch_type {
    WATCH_REGISTER = 1, /* rank to watch: struct watch_register */
    WATCH_REFUSED,      /* watch to rank: kind, why */
    WATCH_GO,           /* watch to rank: world members */
    WATCH_REPORT,       /* rank to watch: it waits in call `seq` */
    WATCH_QUERY,        /* rank to watch: who does not, yet? */
    WATCH_ANSWER,       /* watch to rank: their names */
    WATCH_LEAVE,        /* both ways: `rank` ends its table, after `seq` calls */
    WATCH_LOST,         /* watch to rank: `rank` is gone without a word */
    WATCH_FAIL,         /* both ways: kind, why the table of `rank` has failed */
};

struct watch_head {
    uint32_t type;
    uint32_t rank;
    uint64_t seq;
    uint32_t kind; /* enum err_kind */
    uint32_t len;
};

struct watch_register {
    uint64_t magic;
    uint8_t token[WATCH_TOKEN_BYTES];
    uint32_t world;
    uint32_t version;
    struct member member; /* addr is for the watch to fill */
};

static const uint64_t WATCH_MAGIC = 0x3168637461774b54; /* "TKwatch1" */
enum { WATCH_VERSION = 2 };

#endif

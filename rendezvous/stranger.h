/* stranger.h - identify the server at an address where no leader answered, for messages.
 *
 * Asks on up to two connections of its own: a ping as clients of PyTorch's TCPStore begin with; when that is not
 * answered, an HTTP request for a head. Each sends a few bytes, which may leave lines in the server's log.
 *
 * Units:     answer_ms is how long each of the two questions waits for an answer. The call blocks up to twice as long.
 */
#ifndef TK_RENDEZVOUS_STRANGER_H
#define TK_RENDEZVOUS_STRANGER_H

#include "host/resolve.h"

enum { STRANGER_BYTES = 128 };

enum stranger {
    STRANGER_NOBODY, /* nobody listens; no clause */
    STRANGER_SILENT, /* may be a leader of this project: it waits for its hello, or does not answer at all */
    STRANGER_OTHER,  /* it answered as no leader of this project does */
};

/* Who serves there, and a clause such as "a TCPStore of PyTorch answers there". The server's own words are quoted without
 * control characters. */
enum stranger stranger_ask(struct resolver *at, int64_t answer_ms, char out[static STRANGER_BYTES]);

#endif

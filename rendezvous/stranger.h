/* stranger.h - find out what serves at an address where a store of this project was expected, for messages.
 *
 * Asks on connections of its own, in ways that cost the server nothing: a ping as clients of PyTorch's TCPStore
 * begin with, then an HTTP request for a head.
 *
 * Units:     answer_ms is how long each of the two questions waits for an answer.
 */
#ifndef TK_RENDEZVOUS_STRANGER_H
#define TK_RENDEZVOUS_STRANGER_H

#include "common/resolve.h"

#include <stdbool.h>

enum { STRANGER_BYTES = 128 };

/* A clause such as "a TCPStore of PyTorch answers there". False when nobody listens. The server's own words are
 * quoted without control characters. A store of this project is silent too: it waits for its hello. */
bool stranger_ask(struct resolver *at, int64_t answer_ms, char out[static STRANGER_BYTES]);

#endif

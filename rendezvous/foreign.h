/* foreign.h - identify the server at an address where no leader answered, for error messages of meet.c.
 *
 * Opens up to two connections. The first sends the ping that clients of PyTorch's TCPStore send. If the server does
 * not answer it, the second sends an HTTP HEAD request. The server may log them.
 *
 * Units:     each of the two requests waits answer_ms for an answer, so the call blocks up to twice as long. */
#ifndef TK_RENDEZVOUS_FOREIGN_H
#define TK_RENDEZVOUS_FOREIGN_H

#include "host/resolve.h"

enum { FOREIGN_BYTES = 128 };

enum foreign {
    FOREIGN_NOBODY, /* nothing listens there; out is "" */
    FOREIGN_SILENT, /* it answered neither request: it may be a leader of this project, which waits for HELLO */
    FOREIGN_OTHER, /* it is not a leader of this project */
};

/* Writes a clause such as "a TCPStore of PyTorch answers there" to `out`. It quotes the server's answer without
 * control characters. */
enum foreign foreign_identify(struct resolver *at, int64_t answer_ms, char out[static FOREIGN_BYTES]);

#endif

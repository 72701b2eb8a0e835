/* requests.h - apply requests to the store's table, at once or as a client's will.
 *
 * A will is a list of requests that the server applies when the client's connection ends. Others so notice at
 * once that a process has exited, because the kernel closes its connections, however it exits. The will of a
 * client that only fell silent (a broken network, a stopped process) is not applied, because the client may come
 * back.
 */
#ifndef TK_RENDEZVOUS_REQUESTS_H
#define TK_RENDEZVOUS_REQUESTS_H

#include "rendezvous/table.h"

/* The largest will of a client, as frames. */
enum { REQUESTS_WILL_BYTES = 1024 };

/* Apply OP_SET, OP_ADD or OP_COMPARE_SET. *payload is the answer's payload, which points into `sum` or the
 * table. */
enum protocol_status request_apply(struct table *t, const struct protocol_request *r, char sum[static 8],
                                   struct view *payload);

/* Append a request to the will. STATUS_FULL when there is no room. */
enum protocol_status will_keep(struct buf *will, const struct protocol_request *r);

/* Apply the will's requests in order; one that fails is skipped. */
void will_apply(const struct buf *will, struct table *t);

#endif

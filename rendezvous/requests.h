/* requests.h - what requests do to the table, now or as a client's will.
 *
 * A will is for others to notice at once that a process has ended: the kernel closes its connections, however it died.
 * A client that only fell silent (a broken network, a stopped process) may come back, so its will is not done.
 */
#ifndef TK_RENDEZVOUS_REQUESTS_H
#define TK_RENDEZVOUS_REQUESTS_H

#include "rendezvous/table.h"

/* A client's will at most, as frames. */
enum { REQUESTS_WILL_BYTES = 1024 };

/* OP_SET, OP_ADD, OP_COMPARE_SET. *payload is what the answer carries; it points into `sum` or the table. */
enum protocol_status request_apply(struct table *t, const struct protocol_request *r, char sum[static 8],
                                   struct view *payload);

/* Remember one more request. STATUS_FULL when there is no room. */
enum protocol_status will_keep(struct buf *will, const struct protocol_request *r);

/* Do them, in their order; one that fails is passed over. */
void will_apply(const struct buf *will, struct table *t);

#endif

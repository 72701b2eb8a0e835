/* requests.h - apply requests to the store's table. */
#ifndef TK_RENDEZVOUS_REQUESTS_H
#define TK_RENDEZVOUS_REQUESTS_H

#include "rendezvous/table.h"

/* Apply OP_SET, OP_ADD or OP_COMPARE_SET. *payload is the answer's payload, which points into `sum` or the
 * table. */
enum protocol_status request_apply(struct table *t, const struct protocol_request *r, char sum[static 8],
                                   struct view *payload);

#endif

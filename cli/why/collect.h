/* collect.h - read from the API server what `kubectl ptj why` needs.
 *
 * Errors:    only of the job itself; what else cannot be read costs that part and becomes a gap.
 */
#ifndef TK_CLI_WHY_COLLECT_H
#define TK_CLI_WHY_COLLECT_H

#include "cli/session.h"
#include "cli/why/finding.h"

/* Of a list at most WHY_PAGES_MAX pages are read, 2500 objects: pods of two attempts of the largest job. */
enum { WHY_PAGE = 250, WHY_PAGES_MAX = 10 };

struct collected {
    struct session *session;
    struct trainjob *job;
    cJSON *pending; /* answer of Kueue */
    struct buf log;
    struct why_facts facts; /* of all these; it owns its arrays here */
};

int collect(struct collected *g, struct session *s, const char *job, struct err *err) MUST_CHECK;
void collect_release(struct collected *g);

#define cleanup_collected __attribute__((cleanup(collect_release)))

#endif

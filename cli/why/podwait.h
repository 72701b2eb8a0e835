/* podwait.h - find why a pod does not start, or does not go on. Pure. */
#ifndef TK_CLI_WHY_PODWAIT_H
#define TK_CLI_WHY_PODWAIT_H

#include "cli/why/finding.h"

/* `object` is the pod as the API server gives it. WHY_HEALTHY: it just starts, or runs. */
struct finding podwait_of(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                          struct arena *a);

/* Message, beginning so, of the newest event of this reason about the finding's pod and, where both say one, its container. NULL:
 * there is none. */
const char *podwait_event(const struct why_facts *f, const struct finding *g, const char *reason,
                          const char *begins);

#endif

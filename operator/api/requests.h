/* requests.h - the sum of the resource requests of pods, in which a limit without a request counts as one. Pure.
 *
 * Limits:    REQUESTS_MAX resources; further ones are left out. A sum is exact to 2^53 of the resource's unit.
 */
#ifndef TK_OPERATOR_API_REQUESTS_H
#define TK_OPERATOR_API_REQUESTS_H

#include "common/json.h"

enum { REQUESTS_MAX = 32 };

struct requests {
    struct request {
        const char *name; /* borrowed from the pod */
        double amount;
    } items[REQUESTS_MAX];
    int n;
};

/* The value of a quantity; 0: it is none. */
double requests_amount(const cJSON *q);

/* Add `pods` times what a pod of this spec needs while it trains: its containers and sidecars. */
void requests_add(struct requests *sum, const cJSON *pod_spec, int pods);

/* {"cpu":"1500m","memory":"1024"} */
cJSON *requests_json(const struct requests *sum);

#endif

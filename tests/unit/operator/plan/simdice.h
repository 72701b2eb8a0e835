/* simdice.h - what the two halves of the simulated cluster share. */
#ifndef TK_TESTS_OPERATOR_SIMDICE_H
#define TK_TESTS_OPERATOR_SIMDICE_H

#include "simcluster.h"

cJSON *sim_get(const cJSON *node, const char *key); /* one that may be changed */
void sim_put(cJSON *object, const char *key, cJSON *value);
cJSON *sim_instant(const struct sim *s, int64_t after_ms);
void sim_touch_job(struct sim *s, bool spec); /* a new version; spec: and generation */
void sim_delete_pod(struct sim *s, cJSON *pod, bool force);
void sim_remove_pod(struct sim *s, cJSON *pod);

#endif

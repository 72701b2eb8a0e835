/* podbrief.h - test helper: a Pod object from its short form in a golden file. */
#ifndef TK_TESTS_OPERATOR_PODBRIEF_H
#define TK_TESTS_OPERATOR_PODBRIEF_H

#include "common/json.h"

/* `hash` is the template hash of the job. Free with cJSON_Delete. */
cJSON *brief_pod(const cJSON *brief, const char *job, const char *uid, const char *hash);

/* Copy a member under another name, if it is there. */
void brief_copy(cJSON *to, const char *key, const cJSON *from, const char *from_key);

/* The job of this UID controls the object. */
void brief_owner(cJSON *meta, const char *uid);

#endif

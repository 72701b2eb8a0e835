/* whyjson.h - the answer of `kubectl ptj why` as one JSON object; `why --help` lists its fields. Pure. */
#ifndef TK_CLI_WHY_WHYJSON_H
#define TK_CLI_WHY_WHYJSON_H

#include "cli/why/finding.h"

/* Free with cJSON_Delete. What is not known is absent. */
cJSON *whyjson_of(const struct why_facts *f);

#endif

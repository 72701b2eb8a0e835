/* yaml.h - one YAML document as a JSON tree, within bounds.
 *
 * Ownership: free the tree with cJSON_Delete.
 * Errors:    ERR_INVALID with the line: not YAML, anchors and aliases, tags, several documents, a key
 *            twice, over the limits (1 MiB, 10000 nodes, 32 levels). Plain true, false, null, ~ and
 *            numbers are typed as in JSON; everything else is a string.
 */
#ifndef TK_KUBE_AUTH_YAML_H
#define TK_KUBE_AUTH_YAML_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <cjson/cJSON.h>

enum { YAML_MAX_BYTES = 1 << 20, YAML_MAX_NODES = 10000, YAML_MAX_DEPTH = 32 };

cJSON *yaml_parse(struct sv text, struct err *err) MUST_CHECK;

#endif

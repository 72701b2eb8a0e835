/* yaml_write.h - write a JSON tree as YAML for people: block style, strings quoted only where they must be.
 *
 * Readers of YAML 1.1 (PyYAML, kubectl) and of YAML 1.2 read the same values back.
 *
 * Errors:    ERR_INVALID: nested over YAML_WRITE_DEPTH_MAX, text that is not UTF-8, or more than out->max
 *            bytes. The bytes appended before the error stay.
 */
#ifndef TK_COMMON_YAML_WRITE_H
#define TK_COMMON_YAML_WRITE_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <cjson/cJSON.h>

enum { YAML_WRITE_DEPTH_MAX = 100 };

/* Append one document, without "---". Text of several lines becomes a literal block where YAML allows it. In
 * text with a hidden character (text_is_hidden), all non-ASCII characters are written as \uXXXX. */
int yaml_write(const cJSON *node, struct buf *out, struct err *err) MUST_CHECK;

#endif

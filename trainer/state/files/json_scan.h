/* json_scan.h - JSON read from front to end: the little that safetensors headers and manifests need. Pure.
 *
 * Ownership: a scan borrows the text. Nothing recurses deeper than JSON_SCAN_DEPTH.
 * Errors:    -1 or false, and the scan stays where the trouble is; callers know what they expected and say so.
 */
#ifndef TK_TRAINER_STATE_FILES_JSON_SCAN_H
#define TK_TRAINER_STATE_FILES_JSON_SCAN_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_SCAN_DEPTH = 16 };

struct json_scan {
    const char *p, *end;
};

/* Is the next thing `c`? Then it is taken. */
bool json_scan_take(struct json_scan *s, char c);

/* A string, its escapes resolved, NUL-terminated into `size` bytes. Halves of surrogate pairs and \u0000 are refused. */
int json_scan_string(struct json_scan *s, char *out, size_t size) MUST_CHECK;

/* An integer from 0 to 2^53: what every reader of JSON holds exactly. */
int json_scan_integer(struct json_scan *s, int64_t *ret) MUST_CHECK;

/* Any value, passed over. */
int json_scan_skip(struct json_scan *s) MUST_CHECK;

/* Only white space is left. */
bool json_scan_ended(struct json_scan *s);

/* Append `text` in quotes, escaped. */
int json_put_string(struct buf *out, const char *text, struct err *err) MUST_CHECK;

#endif

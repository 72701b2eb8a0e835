/* png.h - encode grey pixels as a PNG file. Pure.
 *
 * Format: PNG (third edition), 8 bits of grey, no filter, one IDAT.
 * Errors: ERR_INVALID (size, or *out reaches its limit).
 */
#ifndef TK_TRAINER_EVENTS_PNG_H
#define TK_TRAINER_EVENTS_PNG_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdint.h>

enum { PNG_SIDE_MAX = 4096 };

/* pixels (height, width), 0 is black. */
int png_encode(const uint8_t *pixels, int width, int height, struct buf *out, struct err *err) MUST_CHECK;

#endif

/* png.c - encode grey pixels as a PNG file: IHDR, one IDAT, IEND. */
#include "trainer/events/png.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void big_endian(uint32_t v, uint8_t out[static 4])
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static int put_chunk(struct buf *out, const char *type, const uint8_t *bytes, size_t len, struct err *err)
{
    uint8_t head[8];
    uint8_t tail[4];

    big_endian((uint32_t)len, head);
    memcpy(head + 4, type, 4);
    uLong crc = crc32(crc32(0, NULL, 0), head + 4, 4);
    big_endian((uint32_t)(len ? crc32(crc, bytes, (uInt)len) : crc), tail);
    if (buf_append(out, head, sizeof(head), err) || (len && buf_append(out, bytes, len, err)))
        return -1;
    return buf_append(out, tail, sizeof(tail), err);
}

int png_encode(const uint8_t *pixels, int width, int height, struct buf *out, struct err *err)
{
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8}; /* bits; grey, deflate, no interlace are zeros */

    if (width < 1 || width > PNG_SIDE_MAX || height < 1 || height > PNG_SIDE_MAX)
        return err_set(err, ERR_INVALID, "image: %dx%d, expected 1..%d", width, height, PNG_SIDE_MAX);
    size_t row = (size_t)width + 1;
    uLong raw_len = (uLong)(row * (size_t)height);
    uLongf packed_len = compressBound(raw_len);
    cleanup_free uint8_t *raw = calloc(raw_len, 1);
    cleanup_free uint8_t *packed = malloc(packed_len);
    if (!raw || !packed)
        memory_exhausted();
    for (int y = 0; y < height; y++) /* each row behind a 0: no filter */
        memcpy(raw + (size_t)y * row + 1, pixels + (size_t)y * (size_t)width, (size_t)width);
    int rc = compress2(packed, &packed_len, raw, raw_len, Z_BEST_COMPRESSION);
    if (rc == Z_MEM_ERROR)
        memory_exhausted();
    if (rc != Z_OK)
        return err_set(err, ERR_INVALID, "image: zlib refuses %lu bytes", raw_len);
    big_endian((uint32_t)width, header);
    big_endian((uint32_t)height, header + 4);
    return buf_append(out, signature, sizeof(signature), err) ||
                   put_chunk(out, "IHDR", header, sizeof(header), err) ||
                   put_chunk(out, "IDAT", packed, packed_len, err) || put_chunk(out, "IEND", NULL, 0, err)
               ? -1
               : 0;
}

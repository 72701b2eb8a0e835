/* golden.h - what other tokenizers made of the corpus: tests/golden/text/record.py. */
#ifndef TK_TESTS_UNIT_TOOLS_TEXT_GOLDEN_H
#define TK_TESTS_UNIT_TOOLS_TEXT_GOLDEN_H

#include "common/fsutil.h"

#include <stdint.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/text/"

/* All of a file; to be released. */
static inline struct buf golden_file(const char *name)
{
    struct buf b = BUF_INIT(1 << 20);
    char path[PATH_MAX];
    struct err err;

    snprintf(path, sizeof(path), GOLDEN "%s", name);
    if (fs_read(path, &b, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    return b;
}

/* The i-th uint16 of it. */
static inline unsigned golden_u16(const struct buf *b, size_t i)
{
    return (uint8_t)b->data[2 * i] | (unsigned)(uint8_t)b->data[2 * i + 1] << 8;
}

#endif

/* shard.h - the header of an llm.c shard of tokens, for tests that write one. */
#ifndef TK_TESTS_SHARD_H
#define TK_TESTS_SHARD_H

#include "common/endian.h"
#include "trainer/data/tokens.h"

#include <string.h>

static inline void shard_header(int64_t count, uint8_t out[static TOKENS_SHARD_HEADER])
{
    memset(out, 0, TOKENS_SHARD_HEADER);
    le_put(out, TOKENS_SHARD_MAGIC, 4);
    le_put(out + 4, TOKENS_SHARD_VERSION, 4);
    le_put(out + 8, (uint32_t)count, 4);
}

#endif

/* bench_tokens.h - generate pseudo-random tokens in a temporary shard.
 *
 * Ownership: tokens_free. Errors: ERR_FATAL (no room for the file, in TMPDIR or /tmp), those of tokens_open.
 */
#ifndef TK_BENCH_GPU_BENCH_TOKENS_H
#define TK_BENCH_GPU_BENCH_TOKENS_H

#include "trainer/data/tokens.h"

/* So many windows of `time` tokens below vocab (at most 65536), each as likely as any other. */
struct tokens *bench_tokens(int64_t windows, int32_t time, int64_t vocab, struct err *err) MUST_CHECK;

#endif

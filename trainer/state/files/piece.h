/* piece.h - write a large file in pieces, each of which shows that the rank is alive (rank_state_alive).
 *
 * A piece is written to the disk while the next one is made, and waited for. So an fsync behind the last one, during which
 * nothing shows life, has little left to do.
 */
#ifndef TK_TRAINER_STATE_FILES_PIECE_H
#define TK_TRAINER_STATE_FILES_PIECE_H

#include "common/cleanup.h"

#include <stddef.h>

enum { PIECE_BYTES = 8 << 20 };

/* Append to a file. -1 with errno set. */
int piece_write(int fd, const void *bytes, size_t len) MUST_CHECK;

#endif

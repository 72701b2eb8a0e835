/* piece.h - write a large file in pieces; each piece counts as progress of the rank (rank_state_alive).
 * ckpt_dir.c and save.c call it.
 *
 * The kernel writes a piece to the disk while the caller makes the next one; then this function waits for it.
 * So the final fsync, which shows no progress, takes little time.
 */
#ifndef TK_TRAINER_STATE_FILES_PIECE_H
#define TK_TRAINER_STATE_FILES_PIECE_H

#include "common/cleanup.h"

#include <stddef.h>

enum { PIECE_BYTES = 8 << 20 };

/* Append to a file. -1 with errno set. */
int piece_write(int fd, const void *bytes, size_t len) MUST_CHECK;

#endif

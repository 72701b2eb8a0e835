/* progress_file.h - read the progress file that a training may write: CONTRACT_ENV_PROGRESS_FILE. tracker.c
 * calls it.
 *
 * The file is one JSON object of at most PROGRESS_FILE_BYTES with any of these numbers: step, totalSteps, epoch,
 * totalEpochs, percent, loss, samplesPerSecond. Other members are ignored. The program may write the file in
 * place: an incomplete file gives no values.
 *
 * Ownership: *f borrows nothing; progress_file_read keeps no descriptor.
 * Errors:    none: a missing file, a link, a FIFO, a file that is too long or not such an object gives no
 *            values. */
#ifndef TK_LAUNCHER_PROGRESS_PROGRESS_FILE_H
#define TK_LAUNCHER_PROGRESS_PROGRESS_FILE_H

#include "common/sv.h"
#include "launcher/progress/progress.h"

enum { PROGRESS_FILE_BYTES = 4096 };

/* Identifies the version of the file that was read last; zero-initialised. */
struct progress_file {
    int64_t mtime_s, mtime_ns, size;
    uint64_t inode;
};

/* Read the file if it has changed since the last call. False: unchanged, or no values. */
bool progress_file_read(struct progress_file *f, const char *path, struct progress_seen *ret);

/* Parse the file's text. Pure. */
bool progress_file_parse(struct sv text, struct progress_seen *ret);

#endif

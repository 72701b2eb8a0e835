/* progress_file.h - read the progress that a training keeps in a file of its own: CONTRACT_ENV_PROGRESS_FILE.
 *
 * The file is one JSON object of at most PROGRESS_FILE_BYTES with any of these numbers: step, totalSteps, epoch,
 * totalEpochs, percent, loss, samplesPerSecond. Other members are passed over. The program may write it in place: a file
 * that is not finished says nothing.
 *
 * Ownership: *f borrows nothing; progress_file_read keeps no descriptor.
 * Errors:    none: no file, a link, a FIFO, a file that is too long or no such object all say nothing.
 */
#ifndef TK_LAUNCHER_PROGRESS_PROGRESS_FILE_H
#define TK_LAUNCHER_PROGRESS_PROGRESS_FILE_H

#include "common/sv.h"
#include "launcher/progress/progress.h"

enum { PROGRESS_FILE_BYTES = 4096 };

/* What the file was when it was last read; zero-initialised. */
struct progress_file {
    int64_t mtime_s, mtime_ns, size;
    uint64_t inode;
};

/* Read the file if it is another one than at the last call. False: nothing new, or nothing that says anything. */
bool progress_file_read(struct progress_file *f, const char *path, struct progress_seen *ret);

/* The file's text. Pure. */
bool progress_file_parse(struct sv text, struct progress_seen *ret);

#endif

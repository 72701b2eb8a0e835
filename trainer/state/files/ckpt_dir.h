/* ckpt_dir.h - the folder of checkpoints of a run and a configuration: a complete step-%010d/ for each. Only
 * this run writes to it. saver.c, resume.c and snapshot.c call it.
 *
 * A checkpoint is written to .tmp-...: every file and the folder are synced, then the folder is renamed and
 * the parent synced. So a kill or a power cut leaves the old checkpoints and at most a .tmp- folder, which
 * the next write removes. In an attempt of a job it is inside of the attempt's mark (attempt_mark.h). If the step has a checkpoint already, that one is renamed to step-...-old until the
 * new one has its name.
 *
 * Other users who may write to the folder cannot redirect a writer: it creates and removes everything by
 * descriptors of folders that it has open, and follows no link.
 *
 * Order:     one writer at a time; ckpt_begin, ckpt_file for each, then ckpt_commit or ckpt_abort.
 * Ownership: the caller owns the writer (zeroed: closed), which borrows `dir`; lists are in the arena.
 * Errors:    ERR_FATAL (cannot write or read; code = errno), ERR_INVALID (damaged: names file and field),
 *            ERR_NOT_FOUND, ERR_PEER (attempt_mark.h). A failed write leaves the folder unchanged. ERR_TRANSIENT (ckpt_commit): the
 *            checkpoint is complete, but may not survive a power cut, since the folder could not be synced.
 */
#ifndef TK_TRAINER_STATE_FILES_CKPT_DIR_H
#define TK_TRAINER_STATE_FILES_CKPT_DIR_H

#include "common/arena.h"
#include "trainer/state/files/attempt_mark.h"
#include "trainer/state/files/manifest.h"
#include "trainer/state/files/tensor.h"

#include <limits.h>

enum { CKPT_NAME_BYTES = 48, CKPT_STEP_DIGITS = 10, CKPT_LIST_MAX = 100000, CKPT_RUN = -1 };
#define CKPT_OLD "-old" /* suffix of a checkpoint that is being replaced */

struct ckpt_writer {
    const char *dir;                                 /* the run's */
    char tmp[CKPT_NAME_BYTES];                       /* the temporary folder; "": none, and nothing is open */
    char path[ATTEMPT_NAME_BYTES + CKPT_NAME_BYTES]; /* of tmp, in dir */
    int folder, base, in; /* descriptors of dir, of the folder of tmp, and of tmp */
    struct manifest manifest;
};

/* Create `dir`, the run's folder, which must not be a link, and the temporary folder in it; m has step,
 * config and run id. mark NULL: no attempt. */
int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct attempt_mark *mark,
               struct err *err) MUST_CHECK;

/* Create `dir` and take the attempt's mark in it, or check that it is still there. Without an attempt it does
 * nothing. */
int ckpt_claim(const char *dir, struct attempt_mark *mark, struct err *err) MUST_CHECK;

/* Write one file: `write` passes its bytes to the sink. */
int ckpt_file(struct ckpt_writer *w, const char *name,
              int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
              struct err *err) MUST_CHECK;

/* Write the manifest, sync, rename; then remove all but the newest `keep` checkpoints up to this step. The
 * writer is closed in any case. */
int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err) MUST_CHECK;
void ckpt_abort(struct ckpt_writer *w);
#define cleanup_ckpt_writer __attribute__((cleanup(ckpt_abort)))

/* Lock the run's folder until the returned descriptor is closed. -1: another process has the lock. 0: there
 * is no folder, or its file system has no locks. */
int ckpt_lock(const char *dir);

struct ckpt_entry {
    const char *name;
    int64_t step; /* CKPT_RUN: possibly a run's folder */
};

struct ckpt_list {
    struct ckpt_entry *entry; /* the checkpoints, newest first; then the runs */
    size_t len, runs;
};

/* List the folders with a checkpoint's name, and the other folders. ERR_NOT_FOUND: no such folder. ERR_TRANSIENT:
 * the list breaks off. */
int ckpt_list(const char *dir, struct arena *a, struct ckpt_list *ret, struct err *err) MUST_CHECK;

/* dir/name. */
int ckpt_path(char out[static PATH_MAX], const char *dir, const char *name, struct err *err) MUST_CHECK;

/* Read the manifest of the checkpoint at `path`. ERR_CONFLICT as manifest_decode. */
int ckpt_manifest(const char *path, struct manifest *ret, struct err *err) MUST_CHECK;

/* Read a file of it, and check its size and CRC against the manifest; at most out->max bytes. */
int ckpt_read(const char *path, const struct manifest *m, const char *name, struct buf *out,
              struct err *err) MUST_CHECK;

#endif

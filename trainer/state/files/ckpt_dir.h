/* ckpt_dir.h - the folder of checkpoints of a run and a configuration: step-%010d/ for each, whole or not there. Nobody else writes
 * in it.
 *
 * A checkpoint is written as .tmp-..., every file and the folder synced, then renamed, then the parent synced: a kill or
 * a power cut leaves the old ones and, at most, a .tmp- folder that the next write removes. One that takes the place of another of its
 * step leaves that there, as step-...-old, until it is in place.
 *
 * Who may write beside it leads a writer nowhere: it makes and removes everything in folders that it holds open, and follows no link.
 *
 * Order:     one writer at a time; ckpt_begin, ckpt_file for each, then ckpt_commit or ckpt_abort.
 * Ownership: a writer is the caller's, zeroed is none, and borrows `dir`; lists live in the arena.
 * Errors:    ERR_FATAL (cannot write or read; code = errno), ERR_INVALID (damaged: names file and field),
 *            ERR_NOT_FOUND. A write that fails leaves the folder as it was; but for ERR_TRANSIENT, from ckpt_commit: the checkpoint
 *            is in its place, and may not survive a power cut, since the folder could not be synced.
 */
#ifndef TK_TRAINER_STATE_FILES_CKPT_DIR_H
#define TK_TRAINER_STATE_FILES_CKPT_DIR_H

#include "common/arena.h"
#include "trainer/state/files/manifest.h"
#include "trainer/state/files/tensor.h"

#include <limits.h>

enum { CKPT_NAME_BYTES = 48, CKPT_STEP_DIGITS = 10, CKPT_LIST_MAX = 100000, CKPT_RUN = -1 };
#define CKPT_OLD "-old" /* behind the name of one that has stepped aside */

struct ckpt_writer {
    const char *dir; /* the run's */
    char tmp
        [CKPT_NAME_BYTES]; /* the folder in it that is written to; "": none, and the next two are not open */
    int folder, in;        /* dir and tmp */
    struct manifest manifest;
};

/* Make `dir`, the run's folder, which may be no link, and in it the one to write to; m gives step, config and run id. */
int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct err *err) MUST_CHECK;

/* One file: `write` gives its bytes to the sink. */
int ckpt_file(struct ckpt_writer *w, const char *name,
              int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
              struct err *err) MUST_CHECK;

/* Manifest, sync, rename; then of the checkpoints up to this step only the newest `keep` stay. The writer has ended in any case. */
int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err) MUST_CHECK;
void ckpt_abort(struct ckpt_writer *w);
#define cleanup_ckpt_writer __attribute__((cleanup(ckpt_abort)))

/* Hold the run's folder until the descriptor that comes back is closed. -1: another process holds it. 0: there is none, or it is on a
 * file system without locks. */
int ckpt_lock(const char *dir);

struct ckpt_entry {
    const char *name;
    int64_t step; /* CKPT_RUN: a folder that may be a run's */
};

struct ckpt_list {
    struct ckpt_entry *entry; /* the checkpoints, newest first; then the runs */
    size_t len, runs;
};

/* What is called like a checkpoint, and the other folders. ERR_NOT_FOUND: no such folder. */
int ckpt_list(const char *dir, struct arena *a, struct ckpt_list *ret, struct err *err) MUST_CHECK;

/* dir/name. */
int ckpt_path(char out[static PATH_MAX], const char *dir, const char *name, struct err *err) MUST_CHECK;

/* The manifest of the checkpoint that lies at `path`. ERR_CONFLICT as manifest_decode. */
int ckpt_manifest(const char *path, struct manifest *ret, struct err *err) MUST_CHECK;

/* A file of it, whole: its size and CRC are those of the manifest, its size at most out->max. */
int ckpt_read(const char *path, const struct manifest *m, const char *name, struct buf *out,
              struct err *err) MUST_CHECK;

#endif

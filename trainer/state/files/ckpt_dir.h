/* ckpt_dir.h - the folder of checkpoints of a run and a configuration: step-%010d/ for each, whole or not there. Nobody else writes
 * in it.
 *
 * A checkpoint is written as .tmp-..., every file and the folder synced, then renamed, then the parent synced: a kill or
 * a power cut leaves the old ones and, at most, a .tmp- folder that the next write removes. One that takes the place of another of its
 * step leaves that there, as step-...-old, until it is in place.
 *
 * Order:     one writer at a time; ckpt_begin, ckpt_file for each, then ckpt_commit or ckpt_abort.
 * Ownership: a writer is the caller's, zeroed is none; lists live in the arena.
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

enum { CKPT_NAME_BYTES = 32, CKPT_STEP_DIGITS = 10, CKPT_LIST_MAX = 100000 };
#define CKPT_OLD "-old" /* behind the name of one that has stepped aside */

struct ckpt_writer {
    char dir[PATH_MAX]; /* the run's */
    char tmp[PATH_MAX]; /* "" : none */
    struct manifest manifest;
};

/* Make `dir`, the run's folder, which may be no link, and in it the one to write to; m gives step, config and run id. */
int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct err *err) MUST_CHECK;

/* One file: `write` gives its bytes to the sink. */
int ckpt_file(struct ckpt_writer *w, const char *name,
              int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
              struct err *err) MUST_CHECK;

/* Manifest, sync, rename; then of the checkpoints up to this step only the newest `keep` stay. */
int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err) MUST_CHECK;
void ckpt_abort(struct ckpt_writer *w);
#define cleanup_ckpt_writer __attribute__((cleanup(ckpt_abort)))

struct ckpt_entry {
    char name[CKPT_NAME_BYTES];
    int64_t step;
};

struct ckpt_list {
    struct ckpt_entry *entry; /* newest first */
    size_t len;
};

/* What is called like a checkpoint. ERR_NOT_FOUND: no such folder. */
int ckpt_list(const char *dir, struct arena *a, struct ckpt_list *ret, struct err *err) MUST_CHECK;

/* Folders in `dir` that may be those of runs. */
struct ckpt_names {
    const char **name;
    size_t len;
};
int ckpt_runs(const char *dir, struct arena *a, struct ckpt_names *ret, struct err *err) MUST_CHECK;

/* dir/name. */
int ckpt_path(char out[static PATH_MAX], const char *dir, const char *name, struct err *err) MUST_CHECK;

/* The manifest of the checkpoint that lies at `path`. ERR_CONFLICT as manifest_decode. */
int ckpt_manifest(const char *path, struct manifest *ret, struct err *err) MUST_CHECK;

/* A file of it, whole: its size and CRC are those of the manifest, its size at most out->max. */
int ckpt_read(const char *path, const struct manifest *m, const char *name, struct buf *out,
              struct err *err) MUST_CHECK;

#endif

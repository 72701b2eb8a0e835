/* candidates.h - list the checkpoints of a folder in the order in which a run tries to resume from them.
 * resume.c calls it.
 *
 * Ownership: all results are in the arena.
 * Errors:    a lack of memory, descriptors or the like (err_is_shortage): a retry may succeed. A folder that
 *            cannot be read for another reason is no error: the list is empty.
 */
#ifndef TK_TRAINER_STATE_CANDIDATES_H
#define TK_TRAINER_STATE_CANDIDATES_H

#include "trainer/state/files/ckpt_dir.h"

#include <stdbool.h>

struct candidate {
    const char *path;
    int64_t step, saved_ms;
    uint32_t launch;
    bool same_config;
    bool damaged;      /* its manifest cannot be read, so the fields above are not known */
    bool other_format; /* damaged, because another version wrote it */
    bool older_own;    /* other_format, and of the run in struct candidate_key */
    struct err why;
};

struct candidates {
    struct candidate *of;
    size_t len;
    struct err why; /* why the folder cannot be read; kind ERR_NONE: it was read */
};

/* The run that wants to resume. */
struct candidate_key {
    const char *run_id;
    uint32_t config;
};

/* The checkpoints in `dir` itself, the highest step first. */
int candidates_in(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                  struct err *err) MUST_CHECK;

/* The same, plus the checkpoints in the runs' folders below it: those of the same configuration first, sorted
 * by the time of writing, since steps of different runs cannot be compared. One whose manifest cannot be read
 * comes before all that it might precede. */
int candidates_below(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                     struct err *err) MUST_CHECK;

#endif

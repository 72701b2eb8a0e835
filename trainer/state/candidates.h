/* candidates.h - list the checkpoints of a folder in the order in which a run tries to resume from them.
 *
 * Ownership: everything lies in the arena.
 * Errors:    a lack of memory, descriptors or the like (err_is_shortage): another try may see more. What else keeps a folder from being
 *            read is no error: there are no checkpoints in it.
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
    bool damaged;      /* its manifest cannot be read, so the members above are not known: */
    bool other_format; /* since another version wrote it, */
    bool older_own;    /* in the run that asks */
    struct err why;
};

struct candidates {
    struct candidate *of;
    size_t len;
    struct err why; /* the folder cannot be read; kind ERR_NONE: it can */
};

/* The run that asks. */
struct candidate_key {
    const char *run_id;
    uint32_t config;
};

/* Those in `dir` itself, the highest step first. */
int candidates_in(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                  struct err *err) MUST_CHECK;

/* These and those in the runs' folders in it: of the same configuration first, and of them the one that was written last, since
 * steps of different runs do not compare. One whose manifest cannot be read stands before all whose place it may have had. */
int candidates_below(const char *dir, struct candidate_key own, struct arena *a, struct candidates *ret,
                     struct err *err) MUST_CHECK;

#endif

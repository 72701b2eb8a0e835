/* candidates.h - list the checkpoints of a folder in the order in which a run tries to resume from them.
 *
 * Ownership: everything lies in the arena.
 * Order:     of a run's own the highest step comes first. Where any run's will do, those of the same configuration come
 *            first, and of them the one that was written last: steps of different runs do not compare. One whose manifest
 *            cannot be read stands before all whose place it may have had.
 * Errors:    those of ckpt_list.
 */
#ifndef TK_TRAINER_STATE_CANDIDATES_H
#define TK_TRAINER_STATE_CANDIDATES_H

#include "trainer/state/files/ckpt_dir.h"

#include <stdbool.h>

struct candidate {
    const char *path;
    int64_t step, saved_ms;
    bool same_run, same_config;
    bool damaged; /* its manifest cannot be read, so its run is not known */
    struct err why;
};

struct candidates {
    struct candidate *of;
    size_t len;
    const struct candidate *foreign; /* the best of those that were left out; NULL: none was */
};

struct candidates_wanted {
    const char *run_id;
    uint32_t config;
    uint32_t launch; /* with `own`: this launch's alone; 0: any launch's */
    bool own;        /* only those of the run `run_id` with the configuration `config` */
};

int candidates_find(const char *dir, const struct candidates_wanted *w, struct arena *a,
                    struct candidates *ret, struct err *err) MUST_CHECK;

#endif

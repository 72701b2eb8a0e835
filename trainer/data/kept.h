/* kept.h - memory of the launcher that holds decoded data across restarts for the ranks of a pod, so that ranks
 * started later take them instead of decoding the files again; else memory of the process's own.
 *
 * The launcher creates an empty memory file (memfd) and names it to the ranks as CONTRACT_ENV_KEPT_DATA. What is in it was
 * written by an earlier process: it is taken only when its key, layout and sizes are those wanted, it is complete, and its
 * labels are those of its classes.
 *
 * Ownership: kept_open or kept_own makes, kept_free frees and unmaps. One process at a time has the launcher's: a second
 *            one gets NULL.
 * Order:     kept_find, or else kept_make (or kept_own), the data written, kept_complete. A process that ends in between
 *            leaves nothing that can be found.
 */
#ifndef TK_TRAINER_DATA_KEPT_H
#define TK_TRAINER_DATA_KEPT_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "trainer/data/layout.h"

/* The data begin so far behind the start of the file: a multiple of every page size. */
enum { KEPT_HEAD_BYTES = 64 * 1024, KEPT_KEY_BYTES = KEPT_HEAD_BYTES - 256 };

struct kept {
    int fd;    /* the file's descriptor, for another process; -1 where memory files are forbidden */
    char *map; /* head and data; NULL: not mapped */
    size_t bytes;
};

/* `where` is the variable's value; NULL or one that names no such file of a living process: NULL, there is none. */
struct kept *kept_open(const char *where);
void kept_free(struct kept *k);

static inline void kept_freep(struct kept **k)
{
    kept_free(*k);
}
#define cleanup_kept __attribute__((cleanup(kept_freep)))

/* Map what was kept under this key with this layout (but for `classes`, which *ret then has) and set *ret to a view of it,
 * to be read only. False: there is none. */
bool kept_find(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret);

/* Drop what was kept and make room for data of this layout; *ret is a view to be written. False: not possible. */
bool kept_make(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret);

/* Memory of this process's own; *ret is a view to be written. ERR_FATAL: there is not enough. */
struct kept *kept_own(const struct data_layout *layout, struct dataset *ret, struct err *err);

/* All is written, and `classes` known: other processes may find it from now on. This one reads only. */
void kept_complete(struct kept *k, int32_t classes);

#endif

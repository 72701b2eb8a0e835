/* kept.h - a cache of decoded data in the launcher's memory: after a restart the ranks of a pod map it
 * instead of decoding the files again. Without it, private memory. pod_data.c calls it.
 *
 * The launcher creates an empty memory file (memfd), whose name ranks get as CONTRACT_ENV_KEPT_DATA. Its
 * content is from an earlier process. kept_find uses it only if its key, layout and sizes match, it is
 * complete, and its labels are below `classes`.
 *
 * Ownership: kept_open or kept_own to kept_free. One process at a time can have the launcher's file: a second
 *            one gets NULL.
 * Order:     kept_find; if it fails kept_make (or kept_own), write the data, kept_complete. If the process
 *            ends in between, kept_find will not find the data.
 */
#ifndef TK_TRAINER_DATA_KEPT_H
#define TK_TRAINER_DATA_KEPT_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "trainer/data/layout.h"

/* The data's offset in the file: a multiple of every page size. */
enum { KEPT_HEAD_BYTES = 64 * 1024, KEPT_KEY_BYTES = KEPT_HEAD_BYTES - 256 };

struct kept {
    int fd;    /* the file's descriptor, for other processes; -1: memory files are not allowed */
    char *map; /* head and data; NULL: not mapped */
    size_t bytes;
};

/* `where` is the variable's value. Returns NULL if it is NULL or does not name such a file of a running
 * process. */
struct kept *kept_open(const char *where);
void kept_free(struct kept *k);

static inline void kept_freep(struct kept **k)
{
    kept_free(*k);
}
#define cleanup_kept __attribute__((cleanup(kept_freep)))

/* Map the data with this key and layout, except `classes`, which *ret then has. *ret is a read-only view.
 * False: there are none. */
bool kept_find(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret);

/* Replace the content by memory for data of this layout; *ret is a writable view. False: not possible. */
bool kept_make(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret);

/* Private memory; *ret is a writable view. ERR_FATAL: not enough memory. */
struct kept *kept_own(const struct data_layout *layout, struct dataset *ret, struct err *err);

/* Call it when all data are written and `classes` is known: from now on other processes can find the data,
 * and this one only reads them. */
void kept_complete(struct kept *k, int32_t classes);

#endif

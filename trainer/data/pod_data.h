/* pod_data.h - the data set in memory that the ranks of one pod share: local rank 0 decodes it once.
 * session.c calls it.
 *
 * The data are in a memory file (kept.h), which the other ranks map read-only through /proc, so no file is
 * left over. If /proc does not allow that, a rank loads its own copy. Each rank maps tokens from their files:
 * ranks share the page cache anyway.
 *
 * Ownership: pod_data_open to pod_data_close; the view borrows the mapping.
 * Order:     a collective call: every rank makes it, with a fingerprint of its configuration.
 * Errors:    those of the data set on the rank that loads; ERR_PEER on the others (the first rank's message
 *            has the reason); ERR_INVALID if ranks have different configurations or data.
 */
#ifndef TK_TRAINER_DATA_POD_DATA_H
#define TK_TRAINER_DATA_POD_DATA_H

#include "collectives/collectives.h"
#include "common/cleanup.h"
#include "trainer/data/fetch.h"
#include "trainer/data/source.h"

struct pod_data {
    struct dataset set;
    struct source *source; /* tokens only, which each rank maps */
    struct kept *memory;   /* on a rank that has loaded the data */
    void *borrowed;        /* another rank's memory, mapped */
    size_t bytes;          /* of `borrowed` */
    bool found;            /* local rank 0 found the data of an earlier attempt */
};

struct pod_data_options {
    struct source_options source;
    bool download; /* local rank 0 downloads missing files of MNIST or Fashion-MNIST */
    struct fetch_limits limits;
    const char *kept; /* value of CONTRACT_ENV_KEPT_DATA (kept.h); NULL: none */
    int64_t now_ms; /* milliseconds since 1970: files that changed just before are not cached (source_key) */
    int local_rank;
    uint32_t fingerprint;
    int64_t timeout_ms;
};

int pod_data_open(struct pod_data *d, struct collectives *comm, const struct pod_data_options *o,
                  struct err *err) MUST_CHECK;
void pod_data_close(struct pod_data *d);
#define cleanup_pod_data __attribute__((cleanup(pod_data_close)))

/* Open the source on one rank; download missing files first, if allowed. Not a collective call.
 * ERR_NOT_FOUND: files are missing and cannot be downloaded; ERR_TRANSIENT: the download failed, and another
 * try may succeed. */
struct source *pod_data_find(const struct pod_data_options *o, struct err *err);

#endif

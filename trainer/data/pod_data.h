/* pod_data.h - the data set in memory that the ranks of one pod share: local rank 0 reads and inflates it once.
 *
 * It lies in a memory file (kept.h) that the others map read-only through /proc; nothing has a name that could be left behind.
 * Where /proc does not allow that, a rank loads its own copy. Tokens are mapped from their files by each rank: the page cache
 * is shared anyway.
 *
 * Ownership: pod_data_open to pod_data_close; the view borrows the mapping.
 * Order:     a collective call: every rank makes it, with a fingerprint of its configuration.
 * Errors:    those of the data set on the rank that loads; ERR_PEER on the others (that rank says why);
 *            ERR_INVALID when ranks were started with different configurations, or found different data.
 */
#ifndef TK_TRAINER_DATA_POD_DATA_H
#define TK_TRAINER_DATA_POD_DATA_H

#include "collectives/collectives.h"
#include "common/cleanup.h"
#include "trainer/data/fetch.h"
#include "trainer/data/source.h"

struct pod_data {
    struct dataset set;
    struct source *source; /* of tokens, which each rank maps */
    struct kept *memory;   /* of a rank that loaded */
    void *borrowed;        /* another rank's memory, mapped */
    size_t bytes;          /* of that */
    bool found;            /* an earlier attempt had decoded the data; local rank 0's word */
};

struct pod_data_options {
    struct source_options source;
    bool download;      /* what is missing of MNIST or Fashion-MNIST, by local rank 0 */
    const char *mirror; /* where from; NULL: the official addresses */
    struct fetch_limits limits;
    const char *kept; /* the launcher's memory for decoded data (kept.h); NULL: none */
    int64_t now_ms;   /* milliseconds since 1970: files changed just before are not kept (source_key) */
    int local_rank;
    uint32_t fingerprint;
    int64_t timeout_ms;
};

int pod_data_open(struct pod_data *d, struct collectives *comm, const struct pod_data_options *o,
                  struct err *err) MUST_CHECK;
void pod_data_close(struct pod_data *d);
#define cleanup_pod_data __attribute__((cleanup(pod_data_close)))

/* The source of one rank, downloaded first when it is not there and may be. No collective call. ERR_NOT_FOUND: it is not
 * there and cannot come; ERR_TRANSIENT: the download failed, and another try may succeed. */
struct source *pod_data_find(const struct pod_data_options *o, struct err *err);

#endif

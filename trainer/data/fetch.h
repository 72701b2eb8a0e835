/* fetch.h - download a data set's file and check its MD5; an incomplete or damaged file never gets its final name.
 *
 * Received bytes are in `<path>.part` until the checksum matches, and a later call resumes from them. One process at a
 * time downloads into a folder (a lock on `<folder>/.fetch.lock`); the others wait for it and find the file.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    after all rounds over all addresses, of the one that says most: ERR_FATAL (cannot write; code = errno),
 *            ERR_TRANSIENT (stalled, cut off, 5xx, 429, lock not had in time; stopped: code = EINTR), ERR_INVALID
 *            (checksum, too large, redirected too often or out of https, not the server's certificate), ERR_NOT_FOUND
 *            (404; with code = ENETUNREACH no server was reached: no address, nobody listens or answers).
 */
#ifndef TK_TRAINER_DATA_FETCH_H
#define TK_TRAINER_DATA_FETCH_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/data/dataset.h"
#include "trainer/data/transfer.h"

enum { FETCH_MIRRORS_MAX = 4 };

/* 64 MiB, 20 s, 30 s, 3 rounds, 1 s, and `lock_ms`. */
struct fetch_limits fetch_limits_default(int64_t lock_ms);

struct fetch {
    const char *urls[FETCH_MIRRORS_MAX]; /* tried in order; NULL ends them early */
    const char *path;                    /* an existing file is left as it is */
    const char *md5;                     /* 32 lower-case hexadecimal digits */
    struct fetch_limits limits;
};

int fetch(const struct fetch *f, struct err *err) MUST_CHECK;

/* What is missing of MNIST (also for DATASET_ANY) or Fashion-MNIST, into torchvision's folder below `dir`. `mirror` is
 * the address of another folder that holds the same files, NULL: the official ones. */
int fetch_dataset(const char *dir, enum dataset_name name, const char *mirror,
                  const struct fetch_limits *limits, struct err *err) MUST_CHECK;

#endif

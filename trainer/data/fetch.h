/* fetch.h - download a data set's file and check its SHA-256; a file gets its final name only when it is complete
 * and correct. pod_source.c calls it.
 *
 * It tries each address once. If no server is reached (a name may not resolve yet when a container starts) or
 * the failure may be temporary, it tries three times, since a run without a job has no later attempt. One
 * process at a time downloads into a folder (a lock on `<folder>/.fetch.lock`); the others wait and then find
 * the file.
 *
 * Ownership: everything is borrowed for the call. A file is in memory until its checksum is known.
 * Errors:    the most helpful one of all addresses: ERR_FATAL (cannot write; code = errno), ERR_TRANSIENT
 *            (stalled, incomplete, 5xx, 429, lock timeout; stopped: code = EINTR), ERR_INVALID (checksum, too
 *            large, too many redirects, a redirect out of https, wrong certificate), ERR_NOT_FOUND (404; with
 *            code = ENETUNREACH no server was reached: no address, nothing listens or answers).
 */
#ifndef TK_TRAINER_DATA_FETCH_H
#define TK_TRAINER_DATA_FETCH_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sha256.h"
#include "trainer/data/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FETCH_MIRRORS_MAX = 2,
    FETCH_BYTES_MAX = 64 << 20,
    FETCH_STALL_S = 30,
    FETCH_PAUSE_MS = 1000,
    FETCH_REDIRECTS_MAX = 5
};

struct fetch_limits {
    size_t bytes_max;           /* of one file */
    int stall_s;                /* give up after this time with less than 1 KiB per second */
    int64_t pause_ms;           /* between two tries; twice as long before the third */
    int64_t lock_ms;            /* the longest wait for another process's download */
    const char *ca_file;        /* certificate authorities; NULL: the system's */
    bool (*stopped)(void *ctx); /* called about once a second; true: give up; NULL: never */
    void *stop_ctx;
};

struct fetch {
    const char *urls[FETCH_MIRRORS_MAX]; /* tried in order; NULL ends them early */
    const char *path;                    /* an existing file is unchanged */
    const char *sha256;                  /* 64 lower-case hexadecimal digits */
    struct fetch_limits limits;
};

int fetch(const struct fetch *f, struct err *err) MUST_CHECK;

/* The SHA-256 of these bytes in such digits. */
enum { FETCH_SUM_BYTES = 2 * SHA256_BYTES + 1 };
void fetch_sum(const void *bytes, size_t len, char out[static FETCH_SUM_BYTES]);

/* Download the missing files of MNIST (also for DATASET_ANY) or Fashion-MNIST into torchvision's folder below
 * `dir`. */
int fetch_dataset(const char *dir, enum dataset_name name, const struct fetch_limits *limits,
                  struct err *err) MUST_CHECK;

#endif

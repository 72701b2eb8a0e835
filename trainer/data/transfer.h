/* transfer.h - one HTTP transfer into an open file, resumed after the bytes that the file already has.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    as fetch.h says.
 */
#ifndef TK_TRAINER_DATA_TRANSFER_H
#define TK_TRAINER_DATA_TRANSFER_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { FETCH_STALL_BYTES = 1024, FETCH_REDIRECTS_MAX = 5 };

struct fetch_limits {
    int64_t bytes_max; /* of one file */
    int connect_s;
    int stall_s;                /* give up after so long with less than FETCH_STALL_BYTES per second */
    int rounds;                 /* over all addresses, while errors are transient */
    int64_t pause_ms;           /* after the first round; twice as long after each further one */
    int64_t lock_ms;            /* longest wait for another process */
    const char *ca_file;        /* certificate authorities; NULL: the system's */
    bool (*stopped)(void *ctx); /* called about once a second; true: give up; NULL: never */
    void *stop_ctx;
};

struct transfer {
    const char *url;
    const char *part; /* the file's name, for messages */
    int fd;           /* its end */
    int64_t have;     /* bytes in it, from which the server is asked to go on */
    const struct fetch_limits *limits;
    bool refused; /* out: the server refused to resume from there */
};

int transfer(struct transfer *t, struct err *err) MUST_CHECK;

#endif

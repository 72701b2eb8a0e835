/* transfer.h - one HTTP transfer into an open file, resumed after the bytes that the file already has.
 *
 * Ownership: everything is borrowed for the call.
 * Errors:    as fetch.h says.
 */
#ifndef TK_TRAINER_DATA_TRANSFER_H
#define TK_TRAINER_DATA_TRANSFER_H

#include "trainer/data/fetch.h"

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

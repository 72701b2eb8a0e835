/* options_read.h - functions that convert option texts to values. Internal to options*.c. No system calls.
 *
 * Errors: ERR_INVALID that names option and value; outputs are then unchanged. An option that is not given leaves
 *         its output unchanged.
 */
#ifndef TK_LAUNCHER_OPTIONS_READ_H
#define TK_LAUNCHER_OPTIONS_READ_H

#include "launcher/options.h"

/* Set *err to "--max-restarts=x: expected ...". Always -1. */
int option_bad(const struct option_values *v, int id, struct err *err, const char *expected);

/* Write the value by the option's row. option_int: of option_integer. */
int option_read(const struct option_values *v, int id, void *field, struct err *err) MUST_CHECK;
int option_int(const struct option_values *v, int id, int *ret, struct err *err) MUST_CHECK;

/* Add a warning; of more than fit the first stay. */
void option_warn(struct options *o, struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --nnodes and --nproc-per-node. */
int options_nnodes(const struct option_values *v, struct options *o, struct err *err) MUST_CHECK;
int options_nproc(const struct option_values *v, const struct options_host *host, struct options *o,
                  struct err *err) MUST_CHECK;

/* Run id, node rank, the leader's and the master's address. options_nnodes comes before. */
int options_rendezvous(const struct option_values *v, const struct options_host *host, struct arena *a,
                       struct options *o, struct err *err) MUST_CHECK;

/* The options of logs.h. options_nproc comes before. */
int options_output(const struct option_values *v, struct arena *a, struct options *o,
                   struct err *err) MUST_CHECK;

#endif

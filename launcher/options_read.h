/* options_read.h - steps from option texts to values, shared by the files that read them. Pure.
 *
 * Errors: ERR_INVALID naming option and value; outputs untouched. An option that is not given leaves its output.
 */
#ifndef TK_LAUNCHER_OPTIONS_READ_H
#define TK_LAUNCHER_OPTIONS_READ_H

#include "launcher/options.h"

/* "--max-restarts=x: expected ...". Always -1. */
int option_bad(const struct option_values *v, int id, struct err *err, const char *expected);

/* The same where words stand to choose from (the list ends with NULL): the one that was most likely meant is named. */
int option_bad_word(const struct option_values *v, int id, const char *const *words, struct err *err,
                    const char *expected);

int option_int(const struct option_values *v, int id, int min, int max, int *ret, struct err *err) MUST_CHECK;
int option_seconds(const struct option_values *v, int id, int64_t *ret_ms, struct err *err) MUST_CHECK;

/* One of a few words; the list ends with NULL. */
int option_word(const struct option_values *v, int id, const char *const *words, const char *expected,
                struct err *err) MUST_CHECK;

/* How many nodes and ranks. */
int options_nnodes(const struct option_values *v, struct options *o, struct err *err) MUST_CHECK;
int options_nproc(const struct option_values *v, const struct options_host *host, struct options *o,
                  struct err *err) MUST_CHECK;

/* Run id, node rank and where the master is; needs nnodes. */
int options_rendezvous(const struct option_values *v, struct arena *a, struct options *o,
                       struct err *err) MUST_CHECK;

/* Where the ranks' output goes; needs nproc. */
int options_output(const struct option_values *v, struct arena *a, struct options *o,
                   struct err *err) MUST_CHECK;

#endif

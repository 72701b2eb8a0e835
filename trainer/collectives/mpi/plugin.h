/* plugin.h - what the trainer asks of libtk_mpi.so, a table: all code that needs an MPI library is behind it, so that the
 * trainer itself needs none and starts as quickly without.
 *
 * Errors: those of collectives.h, as far as MPI lets us: a process that dies is seen by the MPI launcher, which ends the
 *         others; where the library reports it instead, that is ERR_PEER. A message names no missing rank.
 */
#ifndef TK_TRAINER_COLLECTIVES_MPI_PLUGIN_H
#define TK_TRAINER_COLLECTIVES_MPI_PLUGIN_H

#include "trainer/collectives/collectives.h"

enum { MPI_PLUGIN_ABI = 1 };
#define MPI_PLUGIN_FILE "libtk_mpi.so"
#define MPI_PLUGIN_SYMBOL "tk_mpi_plugin"

struct mpi_plugin {
    uint32_t abi;
    /* Fills *c, whose rank and world are those that the launcher has told. */
    int (*open)(struct collectives *c, int64_t timeout_ms, struct err *err) MUST_CHECK;
};

#endif

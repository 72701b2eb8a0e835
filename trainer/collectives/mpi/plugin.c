/* plugin.c - the one symbol of libtk_mpi.so. */
#include "trainer/collectives/mpi/plugin.h"
#include "trainer/collectives/mpi/state.h"

extern const struct mpi_plugin tk_mpi_plugin;

__attribute__((visibility("default"))) const struct mpi_plugin tk_mpi_plugin = {
    .abi = MPI_PLUGIN_ABI,
    .open = mpi_open,
};

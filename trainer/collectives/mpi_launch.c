/* mpi_launch.c - what an MPI launcher tells its processes, and opening what speaks its library's language. */
#include "common/contract.h"
#include "common/plugin.h"
#include "trainer/collectives/mpi/plugin.h"
#include "trainer/collectives/transports.h"

#include <stdlib.h>
#include <string.h>

/* Open MPI: its manual, "Environment variables set for application processes"; MPICH, Intel MPI and others whose launcher
 * is Hydra: MPICH's wiki, "Hydra process management framework". */
static const struct {
    const char *ours, *open_mpi, *hydra;
} names[] = {
    {CONTRACT_ENV_RANK, "OMPI_COMM_WORLD_RANK", "PMI_RANK"},
    {CONTRACT_ENV_WORLD_SIZE, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"},
    {CONTRACT_ENV_LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"},
    {CONTRACT_ENV_LOCAL_WORLD_SIZE, "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"},
};

char *collectives_mpi_getenv(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i].ours) == 0) {
            char *value = getenv(names[i].open_mpi);
            return value ? value : getenv(names[i].hydra);
        }
    return getenv(name);
}

int mpi_plugin_open(struct collectives *c, int64_t timeout_ms, struct err *err)
{
    static const struct plugin p = {.what = "MPI support",
                                    .file = MPI_PLUGIN_FILE,
                                    .symbol = MPI_PLUGIN_SYMBOL,
                                    .abi = MPI_PLUGIN_ABI,
                                    .global = true};
    struct err why = {0};
    const struct mpi_plugin *plugin = plugin_load(&p, NULL, &why);

    if (!plugin)
        return err_set(err, ERR_INVALID, "--backend mpi: %.200s", why.msg);
    if (!collectives_mpi_getenv(CONTRACT_ENV_RANK))
        return err_set(err, ERR_INVALID,
                       "--backend mpi: this process was not started by an MPI launcher: expected "
                       "mpirun -n 2 trainer ...");
    return plugin->open(c, timeout_ms, err);
}

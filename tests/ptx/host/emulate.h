/* emulate.h - stands before tests/fakes/cuda/emulate.h: launches go to whoever set ptx_hook, as nvcc would hand them to the driver,
 * instead of being run on the CPU. */
#ifndef TK_TESTS_PTX_EMULATE_H
#define TK_TESTS_PTX_EMULATE_H

#define emulate_launch emulate_launch_as_fibres
#include "../../fakes/cuda/emulate.h"
#undef emulate_launch

#include <string.h>

enum { PTX_PARAMETERS_MAX = 4096 };

struct ptx_launch {
    const char *file;   /* the .cu file whose kernel it is */
    const void *kernel; /* its address here: the symbol table has its name */
    unsigned grid[3], threads[3];
    size_t shared_bytes, parameter_bytes;
    char parameters[PTX_PARAMETERS_MAX]; /* as they lie in a kernel's parameter memory */
};

void ptx_run(const ptx_launch &launch);

template <class T> void ptx_add(ptx_launch *to, const T &value)
{
    const size_t at = (to->parameter_bytes + alignof(T) - 1) / alignof(T) * alignof(T);
    if (at + sizeof(T) > PTX_PARAMETERS_MAX)
        emulate_broken("parameters of a kernel over 4096 bytes");
    memcpy(to->parameters + at, &value, sizeof(T));
    to->parameter_bytes = at + sizeof(T);
}

template <class... P>
void ptx_queue(const char *file, cudaStream_t stream, dim3 grid, dim3 threads, size_t shared_bytes,
               void (*kernel)(P...), P... parameters)
{
    ptx_launch launch = {file,
                         (const void *)kernel,
                         {grid.x, grid.y, grid.z},
                         {threads.x, threads.y, threads.z},
                         shared_bytes,
                         0,
                         {}};
    (ptx_add(&launch, parameters), ...);
    emulate_queue(stream, [=] { ptx_run(launch); });
}

template <class... P, class... A>
void ptx_queue_as(const char *file, cudaStream_t stream, dim3 grid, dim3 threads, size_t shared_bytes,
                  void (*kernel)(P...), A... arguments)
{
    ptx_queue<P...>(file, stream, grid, threads, shared_bytes, kernel, P(arguments)...);
}

#define emulate_launch(...) ptx_queue_as(__BASE_FILE__, __VA_ARGS__)

#endif

/* fuzz_launch.c - torchrun's reader of the command line gives values within their bounds, or an error that names the
 * option. Byte 0: number of GPUs, and the name under which torchrun is called. */
#include "fuzz_argv.h"

#include "launcher/options.h"

static void check(const struct options *o)
{
    if (o->help || o->version || o->completion || o->install_to)
        return;
    MUST(o->nproc >= 1 && o->nproc <= OPTIONS_NPROC_MAX);
    MUST(o->nnodes_min >= 1 && o->nnodes_min <= o->nnodes && o->nnodes <= MEETING_NODES_MAX);
    MUST(o->node_rank < o->nnodes && o->max_restarts >= 0 && o->shutdown_timeout_ms >= 0);
    MUST(o->program && o->program[0] && o->master_port >= 0 && o->master_port <= 65535);
    MUST(o->nnodes == 1 || (o->meeting.port >= 0 && o->meeting.port <= 65535));
    for (int i = 0; i < o->nproc; i++)
        MUST(o->redirects[i] <= STD_BOTH && o->tee[i] <= STD_BOTH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct words w = {0};
    struct options o;
    struct err err = {0};

    if (size < 1 || size > 4096)
        return 0;
    const struct options_host host = {.get = words_getenv, .cpus = 6, .gpus = data[0] & 7};
    char name[] = "torchrun", other[] = "launch";
    w.argv[w.argc++] = data[0] & 8 ? other : name;
    char *text = arena_strndup(&a, (const char *)data + 1, size - 1);
    words_split(&w, text);
    if (options_parse(w.argc, w.argv, &host, &a, &o, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else
        check(&o);
    return 0;
}

/* test_find.c - whether the trainer loads the plug-in, what it reports if it cannot, and what follows. */
#include "trainer/gpu/find.h"

#include "test.h"

#include "common/fsutil.h"

#include <stdio.h>
#include <string.h>

static const char *plugins;
static char dev[] = "/tmp/gpu-find-XXXXXX"; /* a /dev with a driver in it, and a file that is no plug-in */

#define NCCL .ask = {.backend = COLLECTIVES_NCCL, .local_rank = 1, .local_world = 2}
#define GLOO .ask = {.backend = COLLECTIVES_GLOO, .local_rank = 1, .local_world = 2}
#define ELSEWHERE "use an image with it (trainer-cuda), or --backend gloo"
#define HERE "look at the node's driver and runtime, or use --backend gloo"

static const struct {
    struct gpu_request ask;
    const char *kind; /* of plug-in; NULL: there is no such folder; "": the test program's; ".": `dev` */
    const char *gpus; /* of some_gpus */
    bool no_driver;
    bool found;             /* GPU 1 */
    enum err_kind refused;  /* else */
    const char *says, *too; /* the note, or the error */
} rows[] = {
    {GLOO, .kind = "some_gpus", .gpus = "2", .found = true},
    {NCCL, .kind = "some_gpus", .gpus = "2", .found = true},
    {NCCL, .kind = "some_gpus", .gpus = "1", .refused = ERR_INVALID,
     .says = "2 ranks here and 1 GPU visible"},
    /* Without a driver the plug-in is not even opened: a damaged one would be reported. */
    {GLOO, .kind = "no_symbol", .no_driver = true},
    {.ask = {.backend = COLLECTIVES_GLOO, .no_cuda = true}, .kind = "no_symbol"},
    /* gloo trains on, and reports why not on a GPU. */
    {GLOO, .kind = "some_gpus", .gpus = "broken", .says = "runtime: broken"},
    {GLOO, .kind = "other_abi", .says = "another build"},
    {GLOO, .says = "training on the CPU: "},
    {GLOO, .kind = "some_gpus", .gpus = "0", .says = "no GPU is visible"},
    /* nccl does not. Another image helps only where this one has no GPU support. */
    {NCCL, .kind = "some_gpus", .gpus = "0", .refused = ERR_INVALID, .says = "no GPU is visible"},
    {NCCL, .kind = "some_gpus", .gpus = "broken", .refused = ERR_FATAL,
     .says = "CUDA's runtime: broken: ", .too = HERE},
    {NCCL, .refused = ERR_NOT_FOUND, .says = "--backend nccl: /nonexistent/libtk_cuda.so: no GPU",
     .too = ELSEWHERE},
    {NCCL, .kind = "", .refused = ERR_NOT_FOUND, .says = "this build has no GPU support", .too = ELSEWHERE},
    {NCCL, .kind = ".", .refused = ERR_INVALID, .says = "cannot be loaded", .too = HERE},
    {NCCL, .kind = "no_symbol", .refused = ERR_INVALID, .says = GPU_PLUGIN_SYMBOL, .too = HERE},
    {NCCL, .kind = "other_abi", .refused = ERR_INVALID, .says = "another build", .too = HERE},
};

static void a_gpu_is_found_or_what_is_missing_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *kind = rows[i].kind;
        const struct gpu_plugin *plugin;
        struct gpu_choice got;
        struct err err = {0};
        char dir[512];

        snprintf(dir, sizeof(dir), "%s/%s", plugins, kind ? kind : "");
        const struct gpu_where where = {.dir = !kind               ? "/nonexistent"
                                               : !kind[0]          ? NULL
                                               : strcmp(kind, ".") ? dir
                                                                   : dev,
                                        .dev = rows[i].no_driver ? "/nonexistent" : dev};
        setenv("FAKE_GPUS", rows[i].gpus ? rows[i].gpus : "broken", 1);
        int rc = gpu_find(&rows[i].ask, &where, &plugin, &got, &err);
        const char *said = rc ? err.msg : got.note;
        if ((rc != 0) != (rows[i].refused != ERR_NONE) || (rc && err.kind != rows[i].refused) ||
            (rows[i].says ? !strstr(said, rows[i].says) : said[0]) ||
            (rows[i].too && !strstr(said, rows[i].too)))
            fail_msg("row %zu: %d \"%s\", expected \"%s\"", i, rc, said, rows[i].says ? rows[i].says : "");
        assert_int_equal(got.device, rows[i].found ? 1 : GPU_NONE);
        assert_int_equal(plugin != NULL, rows[i].found);
    }
}

static int make_dev(void **state)
{
    char path[64];
    struct err err;

    (void)state;
    if (!mkdtemp(dev))
        return -1;
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    if (fs_write_atomic(path, "", 0, &err))
        return -1;
    snprintf(path, sizeof(path), "%s/%s", dev, GPU_PLUGIN_FILE);
    return fs_write_atomic(path, "not an object", 13, &err);
}

static int remove_dev(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dev);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gpu_is_found_or_what_is_missing_told)};

    plugins = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, make_dev, remove_dev);
}

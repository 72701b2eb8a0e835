/* test_choose.c - every way of asking for a GPU, on machines of every kind. */
#include "trainer/gpu/choose.h"

#include "test.h"

#include <string.h>

struct machine {
    int devices, driver, capability;
    const char *why;
};

static const struct machine no_driver = {.why =
                                             "CUDA driver version is insufficient for CUDA runtime version"};
static const struct machine old_driver = {.driver = 12080, .why = "CUDA driver version is insufficient"};
static const struct machine minor_driver = {2, 13000, 90, ""};
static const struct machine no_gpu = {.driver = 13050, .why = "no CUDA-capable device is detected"};
static const struct machine one = {1, 13050, 90, ""};
static const struct machine four = {4, 13050, 100, ""};
static const struct machine volta = {2, 13050, 75, ""};

#define NCCL .backend = COLLECTIVES_NCCL
#define GLOO .backend = COLLECTIVES_GLOO
#define RANK_OF(r, n) .local_rank = (r), .local_world = (n)

static const struct row {
    const struct machine *machine;
    struct gpu_request ask;
    const char *want; /* "GPU n"; "" for the CPU; "note: " or "error: " and a part of it */
} rows[] = {
    {&four, {NCCL, RANK_OF(3, 4)}, "GPU 3"},
    {&four, {NCCL, RANK_OF(0, 2)}, "GPU 0"},
    {&one, {NCCL, RANK_OF(0, 1)}, "GPU 0"},
    {&minor_driver, {NCCL, RANK_OF(1, 2)}, "GPU 1"}, /* within a major version the driver may be older */
    {&four, {GLOO, RANK_OF(2, 4)}, "GPU 2"},
    {&one, {GLOO, RANK_OF(3, 4)}, "GPU 0"},
    {&four, {GLOO, RANK_OF(5, 8)}, "GPU 1"},
    {&four, {GLOO, RANK_OF(0, 1), .no_cuda = true}, ""},
    {&four, {NCCL, RANK_OF(0, 1), .no_cuda = true}, "error: --no_cuda forbids them"},
    {&no_driver, {GLOO, RANK_OF(0, 1)}, ""},
    {&no_driver,
     {NCCL, RANK_OF(0, 1)},
     "error: --backend nccl: no NVIDIA driver on this machine; wanted: 1 GPU (limits: nvidia.com/gpu), or"},
    {&old_driver, {NCCL, RANK_OF(0, 1)}, "error: driver serves CUDA 12.8, expected 13.0 or newer"},
    {&old_driver, {GLOO, RANK_OF(0, 1)}, "note: training on the CPU: the NVIDIA driver serves CUDA 12.8"},
    {&no_gpu,
     {NCCL, RANK_OF(0, 1)},
     "error: no GPU is visible (0 devices, no CUDA-capable device is detected); wanted: 1 GPU"},
    {&no_gpu, {NCCL, RANK_OF(0, 1), .visible = ""}, "error: (CUDA_VISIBLE_DEVICES=, no CUDA-capable"},
    {&no_gpu, {NCCL, RANK_OF(0, 1), .visible = "7"}, "error: (CUDA_VISIBLE_DEVICES=7, no CUDA-capable"},
    {&no_gpu, {GLOO, RANK_OF(0, 1)}, "note: no GPU is visible"},
    {&no_gpu, {GLOO, RANK_OF(0, 1), .visible = ""}, ""},
    {&no_gpu, {GLOO, RANK_OF(0, 1), .visible = "-1"}, ""},
    {&volta, {NCCL, RANK_OF(1, 2)}, "error: GPU 1 has compute capability 7.5, expected 8.0 or newer"},
    {&volta, {GLOO, RANK_OF(1, 2)}, "note: GPU 1 has compute capability 7.5"},
    /* More ranks than GPUs. */
    {&one, {NCCL, RANK_OF(1, 2)}, "error: 2 ranks here and 1 GPU visible: expected a GPU for each rank"},
    {&one, {NCCL, RANK_OF(0, 2)}, "GPU 0"}, /* perhaps each rank sees its own; rank 1 fails if not */
    {&four,
     {NCCL, RANK_OF(0, 8)},
     "error: 8 ranks here and 4 GPUs visible: expected a GPU for each rank: --nprocs, --nproc-per-node or "
     "procPerNode 4, or 8 GPUs"},
    {&four, {NCCL, RANK_OF(7, 8), .visible = "0,1,2,3"}, "error: visible in CUDA_VISIBLE_DEVICES=0,1,2,3:"},
    {&one, {NCCL, RANK_OF(1, 2), .shared = "1"}, "GPU 0"},
    {&one, {NCCL, RANK_OF(1, 2), .shared = "0"}, "error: NCCL_MULTI_RANK_GPU_ENABLE=1 lets ranks share"},
    {&four, {NCCL, RANK_OF(6, 8), .shared = "1"}, "GPU 2"},
};

static void check(const struct row *r, size_t at)
{
    struct gpu_facts facts = {.devices = r->machine->devices, .driver = r->machine->driver, .runtime = 13050};
    struct gpu_choice got = {.device = 99};
    struct err err = {0};
    char said[ERR_MSG_BYTES + 16] = "";

    for (int d = 0; d < facts.devices; d++)
        facts.capability[d] = r->machine->capability;
    memcpy(facts.why_none, r->machine->why, strlen(r->machine->why) + 1);
    const int rc = gpu_choose(&r->ask, &facts, &got, &err);
    if (rc)
        snprintf(said, sizeof(said), "error: %s", err.msg);
    else if (got.device != GPU_NONE)
        snprintf(said, sizeof(said), "GPU %d", got.device);
    else if (got.note[0])
        snprintf(said, sizeof(said), "note: %s", got.note);
    const char *part = strchr(r->want, ':') ? strchr(r->want, ':') + 2 : r->want;
    if (strncmp(said, r->want, (size_t)(part - r->want)) != 0 ||
        (*part ? !strstr(said, part) : said[0] != '\0'))
        fail_msg("row %zu: \"%s\", expected \"%s\"", at, said, r->want);
    assert_true((rc == 0 || err.kind == ERR_INVALID) && (got.device == GPU_NONE || !got.note[0]));
}

static void test_all_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check(&rows[i], i);
}

/* Facts about more devices than are kept do not read beyond them. */
static void test_many_devices(void **state)
{
    struct gpu_facts facts = {.devices = 100, .driver = 13050, .runtime = 13050};
    const struct gpu_request ask = {NCCL, RANK_OF(80, 90)};
    struct gpu_choice got;
    struct err err;

    (void)state;
    for (int d = 0; d < GPU_DEVICES_MAX; d++)
        facts.capability[d] = 90;
    assert_int_equal(gpu_choose(&ask, &facts, &got, &err), 0);
    assert_int_equal(got.device, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_ways),
        cmocka_unit_test(test_many_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

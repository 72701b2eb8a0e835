/* test_stages_faults.c - whole runs of models in stages on GPUs: no rank waits for ever for a stage that died, stopped or failed.
 * Whose deadline passes first takes the others along, so that they may end with 138 as well as 140.
 *
 * Arguments: gpu_ranks.h.
 */
#include "test.h"

#include "common/contract.h"
#include "gpu_ranks.h"
#include "staged_nets.h"

#define NCCL .backend = COLLECTIVES_NCCL

/* Rank 1 is the stage in the middle. */
static void a_stage_that_dies_or_stops_ends_the_others(void **state)
{
    (void)state;
    gpu_ranks_check_lost((struct gpu_ranks_task){.world = STAGES, .model = THREE_STAGES});
}

/* Of two stages. Calls are counted: call 0 is the first sum of loss and flags, and a step of two micro-batches is two sends, two
 * receives and a sum. */
static void an_nccl_that_fails_within_a_step_ends_all(void **state)
{
    static const struct {
        const char *fault;
        int64_t log_interval, timeout_s;
        int root,
            code; /* of rank `root`, whose own fault it is, and of the others; root -1: of one of them at least */
    } rows[] = {
        {"stall:1:2", 0, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE}, /* the first step, as it is queued */
        {"hang:0:19", 0, GPU_RANKS_SOON_S, -1, EXIT_CODE_RETRYABLE}, /* a recorded one */
        {"system:1:19", 0, GPU_RANKS_LATE_S, 1, EXIT_CODE_RETRYABLE},
        {"remote:0:12", 1, GPU_RANKS_LATE_S, 0, EXIT_CODE_PEER_LOST},
    };

    (void)state;
    if (!gpu_ranks.emulated)
        skip();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct gpu_ranks_task t = {NCCL,
                                         .world = 2,
                                         .model = TWO_STAGES,
                                         .log_interval = rows[i].log_interval,
                                         .epochs = 1000000,
                                         .timeout_s = rows[i].timeout_s,
                                         .fault = rows[i].fault};
        struct gpu_ranks r = gpu_ranks_start(&t);
        gpu_ranks_read(&r);
        bool found = false;
        for (int k = 0; k < t.world; k++) {
            int code = gpu_ranks_ended(r.pid[k]);
            found = found || ((k == rows[i].root || rows[i].root < 0) && code == rows[i].code);
            if (code != EXIT_CODE_PEER_LOST &&
                (code != rows[i].code || (rows[i].root >= 0 && k != rows[i].root)))
                fail_msg("%s: rank %d ended with %d", rows[i].fault, k, code);
        }
        if (!found)
            fail_msg("%s: no rank ended with %d", rows[i].fault, rows[i].code);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_that_dies_or_stops_ends_the_others),
        cmocka_unit_test(an_nccl_that_fails_within_a_step_ends_all),
    };
    int none = gpu_ranks_find(argc, argv);

    return none ? none : cmocka_run_group_tests(tests, gpu_ranks_make, gpu_ranks_unmake);
}

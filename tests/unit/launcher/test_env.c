/* test_env.c - what a rank is started with. */
#include "launcher/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *get(char *const *env, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
            assert_null(found); /* each once */
            found = *env + n + 1;
        }
    return found;
}

static const struct env_round round_2 = {.node = 1,
                                         .nodes = 2,
                                         .first_rank = 4,
                                         .world = 8,
                                         .first_of_role = 2,
                                         .role_world = 6,
                                         .restart_count = 2,
                                         .run_id = "job-1",
                                         .master_addr = "10.0.0.9",
                                         .master_port = 4711,
                                         .kept_data = "123/4",
                                         .key_file = "123/6",
                                         .rank_state = "123/5"};

static struct options some_options(void)
{
    static char prog[] = "prog", arg[] = "--x=1";
    static char *const program[] = {prog, arg, NULL};

    return (struct options){.nnodes = 2,
                            .nproc = 4,
                            .node_rank = 1,
                            .role = "default",
                            .max_restarts = 3,
                            .signals_text = "SIGTERM",
                            .program = program};
}

static void test_the_whole_list(void **state)
{
    static char path[] = "PATH=/bin", rank[] = "RANK=99", file[] = "TORCHELASTIC_ERROR_FILE=/old",
                report[] = "PTJ_TERMINATION_LOG=/dev/termination-log", kept[] = "TORCHKEEPER_KEPT_DATA=7/8",
                doing[] = "TORCHKEEPER_RANK_STATE=7/9/0", key[] = "TORCHKEEPER_JOB_KEY=00ff",
                key_file[] = "TORCHKEEPER_KEY_FILE=7/10";
    char *const base[] = {path, rank, file, report, kept, doing, key, key_file, NULL};
    static const char *const want[][2] = {{"RANK", "7"},
                                          {"LOCAL_RANK", "3"},
                                          {"GROUP_RANK", "1"},
                                          {"ROLE_RANK", "5"},
                                          {"ROLE_NAME", "default"},
                                          {"WORLD_SIZE", "8"},
                                          {"LOCAL_WORLD_SIZE", "4"},
                                          {"GROUP_WORLD_SIZE", "2"},
                                          {"ROLE_WORLD_SIZE", "6"},
                                          {"MASTER_ADDR", "10.0.0.9"},
                                          {"MASTER_PORT", "4711"},
                                          {"TORCHELASTIC_RESTART_COUNT", "2"},
                                          {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                          {"TORCHELASTIC_RUN_ID", "job-1"},
                                          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                          {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM"},
                                          {"TORCHELASTIC_ERROR_FILE", "/e.json"},
                                          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                          {"TORCHKEEPER_KEPT_DATA", "123/4"},
                                          {"TORCHKEEPER_RANK_STATE", "123/5/3"},
                                          {"TORCHKEEPER_KEY_FILE", "123/6"},
                                          {"OMP_NUM_THREADS", "1"},
                                          {"PATH", "/bin"}};
    cleanup_arena struct arena a = {0};
    const struct options o = some_options();
    char **env = env_build(&o, &round_2, 3, "/e.json", base, &a);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const char *got = get(env, want[i][0]);
        if (!got || strcmp(got, want[i][1]) != 0)
            fail_msg("%s=%s, expected %s", want[i][0], got ? got : "(unset)", want[i][1]);
    }
    struct env_round without = round_2;
    assert_null(get(env, "TORCHKEEPER_JOB_KEY"));
    without.kept_data = without.rank_state = without.key_file = NULL;
    env = env_build(&o, &without, 0, NULL, base, &a);
    assert_null(get(env, "TORCHKEEPER_KEPT_DATA"));
    assert_null(get(env, "TORCHKEEPER_RANK_STATE"));
    assert_null(get(env, "TORCHKEEPER_KEY_FILE"));
    assert_null(get(env, "TORCHELASTIC_ERROR_FILE"));
    assert_null(get(env, "PTJ_TERMINATION_LOG"));
}

/* What was said to the launcher is not for a launcher that a rank starts; its progress file is for both. */
static void test_progress(void **state)
{
    static char port[] = "TORCHKEEPER_PROGRESS_PORT=29402", timeout[] = "TORCHKEEPER_PROGRESS_TIMEOUT=60",
                attempt[] = "PTJ_ATTEMPT=3", file[] = "TORCHKEEPER_PROGRESS_FILE=/a",
                uid[] = "PTJ_JOB_UID=1-f";
    char *const base[] = {port, timeout, attempt, file, uid, NULL};
    cleanup_arena struct arena a = {0};
    const struct options o = some_options();
    struct env_round round = round_2;
    char **env = env_build(&o, &round, 0, NULL, base, &a);

    (void)state;
    assert_null(get(env, "TORCHKEEPER_PROGRESS_PORT"));
    assert_null(get(env, "TORCHKEEPER_PROGRESS_TIMEOUT"));
    assert_null(get(env, "PTJ_ATTEMPT"));
    assert_string_equal(get(env, "TORCHKEEPER_PROGRESS_FILE"), "/a");
    assert_string_equal(get(env, "PTJ_JOB_UID"), "1-f");
    round.progress_file = "/b";
    assert_string_equal(get(env_build(&o, &round, 0, NULL, base, &a), "TORCHKEEPER_PROGRESS_FILE"), "/b");
}

/* Where they may come from a ConfigMap the operator leaves them to the launcher; elsewhere ranks get what PyTorch's gives them. */
static void test_defaults_of_the_operator(void **state)
{
    static char uid[] = "PTJ_JOB_UID=job-1";
    char *const under[] = {uid, NULL}, *const none[] = {NULL};
    cleanup_arena struct arena a = {0};
    const struct options o = some_options();
    char **env = env_build(&o, &round_2, 0, NULL, under, &a);

    (void)state;
    assert_string_equal(get(env, "PYTHONUNBUFFERED"), "1");
    assert_string_equal(get(env, "NCCL_DEBUG"), "WARN");
    env = env_build(&o, &round_2, 0, NULL, none, &a);
    assert_null(get(env, "PYTHONUNBUFFERED"));
    assert_null(get(env, "NCCL_DEBUG"));
}

static void test_what_the_user_set_stays(void **state)
{
    static char uid[] = "PTJ_JOB_UID=job-1", omp[] = "OMP_NUM_THREADS=6",
                nccl[] = "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", debug[] = "NCCL_DEBUG=INFO",
                unbuffered[] = "PYTHONUNBUFFERED=";
    char *const base[] = {uid, omp, nccl, debug, unbuffered, NULL};
    char *const none[] = {NULL};
    cleanup_arena struct arena a = {0};
    struct options o = some_options();
    char **env = env_build(&o, &round_2, 0, NULL, base, &a);

    (void)state;
    assert_string_equal(get(env, "OMP_NUM_THREADS"), "6");
    assert_string_equal(get(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
    assert_string_equal(get(env, "NCCL_DEBUG"), "INFO");
    assert_string_equal(get(env, "PYTHONUNBUFFERED"), "");
    assert_false(env_sets_omp(&o, base));
    assert_true(env_sets_omp(&o, none));
    o.nproc = 1;
    assert_false(env_sets_omp(&o, none));
    assert_null(get(env_build(&o, &round_2, 0, NULL, none, &a), "OMP_NUM_THREADS"));
}

static void test_virtual_local_rank(void **state)
{
    static char devices[] = "CUDA_VISIBLE_DEVICES=4,6,GPU-x";
    static char hidden[] = "CUDA_VISIBLE_DEVICES=", spaced[] = "CUDA_VISIBLE_DEVICES=0, 1";
    char *const base[] = {devices, NULL}, *const none[] = {NULL}, *const no_gpu[] = {hidden, NULL},
                *const two[] = {spaced, NULL};
    cleanup_arena struct arena a = {0};
    struct options o = some_options();

    (void)state;
    o.virtual_local_rank = true;
    assert_string_equal(get(env_build(&o, &round_2, 0, NULL, no_gpu, &a), "CUDA_VISIBLE_DEVICES"), "");
    assert_string_equal(get(env_build(&o, &round_2, 1, NULL, two, &a), "CUDA_VISIBLE_DEVICES"), "1");
    char **env = env_build(&o, &round_2, 2, NULL, base, &a);
    assert_string_equal(get(env, "LOCAL_RANK"), "0");
    assert_string_equal(get(env, "RANK"), "6");
    assert_string_equal(get(env, "CUDA_VISIBLE_DEVICES"), "GPU-x");
    assert_string_equal(get(env_build(&o, &round_2, 1, NULL, none, &a), "CUDA_VISIBLE_DEVICES"), "1");
}

static void join(char **words, char out[static 256])
{
    out[0] = '\0';
    for (; *words; words++)
        snprintf(out + strlen(out), 256 - strlen(out), "%s|", *words);
}

static void test_arguments(void **state)
{
    cleanup_arena struct arena a = {0};
    struct options o = some_options();
    char got[256];

    (void)state;
    join(env_arguments(&o, 1, "py", &a), got);
    assert_string_equal(got, "prog|--x=1|");
    o.local_rank_argument = true;
    join(env_arguments(&o, 1, "py", &a), got);
    assert_string_equal(got, "prog|--local-rank=1|--x=1|");
    o.program_kind = PROGRAM_PYTHON_MODULE;
    join(env_arguments(&o, 2, "py", &a), got);
    assert_string_equal(got, "py|-u|-m|prog|--local-rank=2|--x=1|");
    o.local_rank_argument = false;
    o.program_kind = PROGRAM_PYTHON_FILE;
    join(env_arguments(&o, 2, "py", &a), got);
    assert_string_equal(got, "py|-u|prog|--x=1|");
}

/* $local_rank in arguments, as string.Template of Python reads it; of "$$" only what would hide one from it. */
static void test_local_rank_in_arguments(void **state)
{
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"--gpu=${local_rank}", "--gpu=3"},
        {"$local_rank", "3"},
        {"${local_rank}${local_rank}/$local_rank", "33/3"},
        {"$local_ranks $local_rank_ $Local_rank ${local_rank",
         "$local_ranks $local_rank_ $Local_rank ${local_rank"},
        {"$local_rank-1", "3-1"},
        {"$${local_rank} $$local_rank", "${local_rank} $local_rank"},
        {"kill -9 $$; echo $1 $", "kill -9 $$; echo $1 $"},
        {"$$local_ranks", "$$local_ranks"},
        {"", ""},
    };
    char *words[] = {(char[]){"${local_rank}"}, NULL, NULL};
    cleanup_arena struct arena a = {0};
    struct options o = some_options();

    (void)state;
    o.program = words;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        words[1] = arena_strdup(&a, cases[i].word);
        o.program_kind = PROGRAM_EXECUTABLE; /* its own name is no argument */
        assert_string_equal(env_arguments(&o, 3, "py", &a)[0], "${local_rank}");
        assert_string_equal(env_arguments(&o, 3, "py", &a)[1], cases[i].want);
        o.program_kind = PROGRAM_PYTHON_FILE;
        assert_string_equal(env_arguments(&o, 3, "py", &a)[2], "3");
        assert_string_equal(env_arguments(&o, 3, "py", &a)[3], cases[i].want);
        assert_null(env_arguments(&o, 3, "py", &a)[4]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_whole_list),           cmocka_unit_test(test_progress),
        cmocka_unit_test(test_defaults_of_the_operator), cmocka_unit_test(test_what_the_user_set_stays),
        cmocka_unit_test(test_virtual_local_rank),       cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_local_rank_in_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

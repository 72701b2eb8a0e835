/* test_env.c - what a rank is started with. */
#include "common/sv.h"
#include "launcher/env.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* The texts with | between them, ended by NULL. */
static char **split(const char *text, struct arena *a)
{
    char **words = arena_array(a, 40, char *);
    struct sv rest = sv_from(text), word;

    for (int n = 0; rest.len && sv_next(&rest, '|', &word); n++)
        words[n] = arena_strndup(a, word.p, word.len);
    return words;
}

/* The variable of that name, as it stands there; NULL: it is not set. */
static const char *get(char *const *env, const char *name)
{
    const char *found = NULL;
    const size_t n = strcspn(name, "=");

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
            assert_null(found); /* each once */
            found = *env;
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

/* Where `base` is inherited, local rank `local` gets what is wanted, and no variable that is wanted without a value. */
static void expect(const struct options *o, const struct env_round *round, int local, const char *error_file,
                   const char *base, const char *wanted)
{
    cleanup_arena struct arena a = {0};
    char **env = env_build(o, round, local, error_file, split(base, &a), &a);

    for (char **want = split(wanted, &a); *want; want++) {
        const char *got = get(env, *want);
        if (strchr(*want, '=') ? !got || strcmp(got, *want) != 0 : got != NULL)
            fail_msg("%s, expected %s", got ? got : "not set", *want);
    }
}

static void test_the_whole_list(void **state)
{
    static const char base[] =
        "PATH=/bin|RANK=99|TORCHELASTIC_ERROR_FILE=/old|PTJ_TERMINATION_LOG=/dev/termination-log|"
        "TORCHKEEPER_KEPT_DATA=7/8|TORCHKEEPER_RANK_STATE=7/9/"
        "0|TORCHKEEPER_JOB_KEY=00ff|TORCHKEEPER_KEY_FILE=7/10";
    const struct options o = some_options();
    struct env_round without = round_2;

    (void)state;
    expect(&o, &round_2, 3, "/e.json", base,
           "RANK=7|LOCAL_RANK=3|GROUP_RANK=1|ROLE_RANK=5|ROLE_NAME=default|WORLD_SIZE=8|LOCAL_WORLD_SIZE=4|"
           "GROUP_WORLD_SIZE=2|ROLE_WORLD_SIZE=6|MASTER_ADDR=10.0.0.9|MASTER_PORT=4711|"
           "TORCHELASTIC_RESTART_COUNT=2|TORCHELASTIC_MAX_RESTARTS=3|TORCHELASTIC_RUN_ID=job-1|"
           "TORCHELASTIC_USE_AGENT_STORE=False|TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM|"
           "TORCHELASTIC_ERROR_FILE=/e.json|TORCH_NCCL_ASYNC_ERROR_HANDLING=1|TORCHKEEPER_KEPT_DATA=123/4|"
           "TORCHKEEPER_RANK_STATE=123/5/3|TORCHKEEPER_KEY_FILE=123/6|OMP_NUM_THREADS=1|PATH=/"
           "bin|PYTHONFAULTHANDLER|"
           "TORCHKEEPER_JOB_KEY");
    without.kept_data[0] = without.rank_state[0] = without.key_file[0] = '\0';
    expect(&o, &without, 0, NULL, base,
           "TORCHKEEPER_KEPT_DATA|TORCHKEEPER_RANK_STATE|TORCHKEEPER_KEY_FILE|TORCHELASTIC_ERROR_FILE|"
           "PTJ_TERMINATION_LOG");
}

/* A launcher that a rank starts does not inherit the launcher's settings; both share the progress file and the job's attempt. */
static void test_progress(void **state)
{
    static const char base[] =
        "TORCHKEEPER_PROGRESS_PORT=29402|TORCHKEEPER_PROGRESS_TIMEOUT=60|PTJ_ATTEMPT=3|PTJ_NODE_ORDER=1|"
        "TORCHKEEPER_PROGRESS_FILE=/a|PTJ_JOB_UID=1-f";
    struct options o = some_options();
    struct env_round round = round_2;

    (void)state;
    expect(&o, &round, 0, NULL, base,
           "TORCHKEEPER_PROGRESS_PORT|TORCHKEEPER_PROGRESS_TIMEOUT|PTJ_ATTEMPT=3|PTJ_NODE_ORDER|"
           "TORCHKEEPER_PROGRESS_FILE=/a|PTJ_JOB_UID=1-f|PYTHONFAULTHANDLER");
    round.progress_file = "/b";
    o.progress_timeout_ms = 60000;
    expect(&o, &round, 0, NULL, base, "TORCHKEEPER_PROGRESS_FILE=/b|PYTHONFAULTHANDLER=1");
    expect(&o, &round, 0, NULL, "PYTHONFAULTHANDLER=0", "PYTHONFAULTHANDLER=0");
}

/* Where they may come from a ConfigMap the operator leaves them to the launcher; elsewhere ranks get what PyTorch's gives them.
 * What the user set stays. */
static void test_defaults(void **state)
{
    static char omp[] = "OMP_NUM_THREADS=6";
    char *const base[] = {omp, NULL}, *const none[] = {NULL};
    struct options o = some_options();

    (void)state;
    expect(&o, &round_2, 0, NULL, "PTJ_JOB_UID=job-1", "PYTHONUNBUFFERED=1|NCCL_DEBUG=WARN");
    expect(&o, &round_2, 0, NULL, "", "PYTHONUNBUFFERED|NCCL_DEBUG");
    expect(&o, &round_2, 0, NULL,
           "PTJ_JOB_UID=job-1|OMP_NUM_THREADS=6|TORCH_NCCL_ASYNC_ERROR_HANDLING=0|NCCL_DEBUG=INFO|"
           "PYTHONUNBUFFERED=",
           "OMP_NUM_THREADS=6|TORCH_NCCL_ASYNC_ERROR_HANDLING=0|NCCL_DEBUG=INFO|PYTHONUNBUFFERED=");
    assert_false(env_sets_omp(&o, base));
    assert_true(env_sets_omp(&o, none));
    o.nproc = 1;
    assert_false(env_sets_omp(&o, none));
    expect(&o, &round_2, 0, NULL, "", "OMP_NUM_THREADS");
}

static void test_virtual_local_rank(void **state)
{
    struct options o = some_options();

    (void)state;
    o.virtual_local_rank = true;
    expect(&o, &round_2, 0, NULL, "CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=");
    expect(&o, &round_2, 1, NULL, "CUDA_VISIBLE_DEVICES=0, 1", "CUDA_VISIBLE_DEVICES=1");
    expect(&o, &round_2, 2, NULL, "CUDA_VISIBLE_DEVICES=4,6,GPU-x",
           "LOCAL_RANK=0|RANK=6|CUDA_VISIBLE_DEVICES=GPU-x");
    expect(&o, &round_2, 1, NULL, "", "CUDA_VISIBLE_DEVICES=1");
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
        cmocka_unit_test(test_the_whole_list), cmocka_unit_test(test_progress),
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_virtual_local_rank),
        cmocka_unit_test(test_arguments),      cmocka_unit_test(test_local_rank_in_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

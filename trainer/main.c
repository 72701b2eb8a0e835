/* main.c - the trainer program: arguments in, exit status out. */
#include "collectives/collectives.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"
#include "trainer/cli/config.h"
#include "trainer/cli/help.h"
#include "trainer/run/error_writer.h"
#include "trainer/run/run.h"
#include "trainer/run/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(int rank, const struct err *err)
{
    if (rank >= 0)
        fprintf(stderr, "trainer: rank %d: %s\n", rank, err->msg);
    else
        fprintf(stderr, "trainer: %s\n", err->msg);
}

/* Print the error on stderr, and write it to the launcher's error file. */
static int fail(const struct run_env *env, int rank, int exit_code, const struct err *err)
{
    const char *path = env->get("TORCHELASTIC_ERROR_FILE");
    struct err write_err;

    say(rank, err);
    if (path && path[0] &&
        error_writer_write(path, err->msg, exit_code, env->clock.wall_ms(env->clock.ctx), &write_err))
        say(rank, &write_err);
    return exit_code;
}

/* `code`, or 138 if the error is a lack of memory or other resources: a retry may succeed. */
static int code_of(int code, const struct err *err)
{
    return err_is_shortage(err) ? EXIT_CODE_RETRYABLE : code;
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int load(int argc, char **argv, struct arena *a, struct config *cfg, struct err *err)
{
    if (argv[1][0] == '-')
        return err_set(err, ERR_INVALID,
                       "%.40s: expected the name of a preset or a model file before the options "
                       "(trainer --help)",
                       argv[1]);
    return config_load(argv[1], a, cfg, err) || config_options(argc - 2, argv + 2, cfg, err) ? -1 : 0;
}

static void failed(const struct run_env *env, const struct run_result *result, const struct err *err)
{
    (void)fail(env, result->rank, result->exit_code, err);
}

static int train(const struct config *cfg, struct run_env *env)
{
    cleanup_stop struct stop stop = {.fd = -1};
    struct run_result result;
    struct err err;

    env->stop = &stop;
    env->failed = failed;
    if (!run(cfg, env, &result, &err) && result.warning.kind)
        say(result.rank, &result.warning);
    if (!result.device_lost)
        return result.exit_code;
    fflush(stdout);
    _exit(result.exit_code);
}

int main(int argc, char **argv)
{
    cleanup_arena struct arena arena = {0};
    struct config cfg;
    struct err err;
    int ranks;
    struct run_env env = {.get = getenv, .clock = clock_system(), .out = stdout, .gpu = {.dev = "/dev"}};

    fs_fill_standard();
    char *error_file = getenv("TORCHELASTIC_ERROR_FILE");

    if (error_file && error_file[0])
        memory_on_exhausted(error_writer_exhausted, error_file);
    json_memory_must(); /* so that lack of memory does not look like a damaged manifest */
    env.started_ms = env.clock.mono_ms(env.clock.ctx);
    env.bar = isatty(STDERR_FILENO) ? stderr : NULL;
    if (argc < 2 || is_help(argv[1])) {
        help_program(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_CODE_USAGE : EXIT_CODE_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("trainer (Torchkeeper) %s\n", TK_VERSION);
        return EXIT_CODE_OK;
    }
    if (load(argc, argv, &arena, &cfg, &err))
        return fail(&env, -1, code_of(EXIT_CODE_USAGE, &err), &err);
    if (cfg.help) {
        help_preset(stdout, &cfg);
        return EXIT_CODE_OK;
    }
    if (cfg.show) {
        fputs(cfg.source, stdout);
        return EXIT_CODE_OK;
    }
    if (spawn_count(&cfg, env.get, env.gpu.dev, &ranks, &err) ||
        (ranks > 1 && spawn_ranks(ranks, argc, argv, &err)))
        return fail(&env, -1, code_of(err.kind == ERR_FATAL ? EXIT_CODE_ERROR : EXIT_CODE_USAGE, &err), &err);
    return train(&cfg, &env);
}

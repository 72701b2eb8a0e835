/* fuzz_train.c - the trainer's command line and environment: values within their bounds, or an error that names the
 * option. Byte 0: which preset. */
#include "fuzz_argv.h"

#include "trainer/run/spawn.h"
#include "trainer/state/run_id.h"

static const char *const PRESETS[] = {"linear", "mnist-cnn", "gpt2-bytes", "pipeline"};

static void check_run(const struct config *cfg)
{
    struct run_id id;
    struct err err = {0};
    int ranks;

    MUST(cfg->batch_size >= 1 && cfg->batch_size <= BATCH_SIZE_MAX && cfg->nprocs >= 0 &&
         cfg->nprocs <= NPROCS_MAX);
    MUST(cfg->epochs >= 0 && cfg->max_steps >= 0 && cfg->save_steps >= 0 && cfg->keep >= 0 &&
         cfg->timeout_s > 0);
    if (spawn_count(cfg, words_getenv, "/nonexistent", &ranks, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else
        MUST(ranks >= 1 && (size_t)ranks <= 4096);
    MUST(run_id_find(words_getenv, &id, &err) == 0);
    MUST(id.text[0] && memchr(id.text, '\0', sizeof(id.text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct words w = {0};
    struct config cfg;
    struct err err = {0};

    if (size < 1 || size > 4096)
        return 0;
    words_split(&w, arena_strndup(&a, (const char *)data + 1, size - 1));
    MUST(config_load(PRESETS[data[0] % ARRAY_LEN(PRESETS)], &a, &cfg, &err) == 0);
    if (config_options(w.argc, w.argv, &cfg, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else
        check_run(&cfg);
    return 0;
}

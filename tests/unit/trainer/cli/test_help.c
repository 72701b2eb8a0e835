/* test_help.c - the manual names everything there is. */
#include "examples.h"

#include "trainer/cli/help.h"
#include "trainer/cli/options.h"
#include "trainer/model/layer.h"
#include "trainer/presets/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("the help lacks \"%s\"", what);
}

static void lines_fit(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        if (len > 80)
            fail_msg("a line of %zu columns: %.*s", len, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

static void the_program_names_presets_and_layers(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    help_program(out);
    fclose(out);
    for (size_t i = 0; presets[i].name; i++)
        expect(text, presets[i].name);
    for (int i = 0; layer_types[i]; i++)
        expect(text, layer_types[i]);
    expect(text, "{format: idx, train, train_targets [, test, test_targets]}");
    expect(text, "val_fraction");
    expect(text, "{save_every},");
    expect(text, "{save_path} and {loss}");
    expect(text, "epoch_all");
    expect(text, "stages: [a, b, c]");
    lines_fit(text);
    free(text);
}

static void a_preset_names_every_option(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(config_load("mnist-cnn", &a, &cfg, &err), 0);
    help_preset(out, &cfg);
    fclose(out);
    for (const struct option_row *o = option_table; o->name; o++) {
        char option[64];
        snprintf(option, sizeof(option), "--%s%s%s\n", o->name, o->value ? "=" : "",
                 o->value ? o->value : "");
        expect(text, option);
    }
    expect(text, "Default 0.001, and it is multiplied by the number of ranks.");
    expect(text, "Default 500 divided by the number of ranks.");
    expect(text, "Default 10.");
    expect(text, "143  stopped by SIGTERM");
    lines_fit(text);
    free(text);
}

/* What a preset has and where it differs from the others, in lines that fit a terminal. */
static void every_preset_shows_what_it_is(void **state)
{
    (void)state;

    for (size_t i = 0; presets[i].name; i++) {
        cleanup_arena struct arena a = {0};
        struct config cfg;
        struct err err;
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        assert_int_equal(config_load(presets[i].name, &a, &cfg, &err), 0);
        help_preset(out, &cfg);
        fclose(out);
        expect(text, presets[i].name);
        /* Every line of the preset below its notes, or the beginning of it where it is folded. */
        for (const char *line = strstr(presets[i].text, "\nmodel:") + 1; *line; line += *line == '\n') {
            char begin[48];
            int n = (int)strcspn(line, "\n");
            snprintf(begin, sizeof(begin), "%.*s", n < 40 ? n : 40, line);
            if (*line != '#')
                expect(text, begin);
            line += n;
        }
        expect(text, "--resume checkpoints");
        if (cfg.save_path)
            expect(text, "        Default checkpoint.pt.\n");
        if (!cfg.sampler_seed)
            expect(text, "        Default 0.\n");
        bool images =
            strcmp(presets[i].name, "mnist-cnn") == 0 || strcmp(presets[i].name, "fashion-mlp") == 0;
        assert_int_equal(strstr(text, "--data data/fashion-mnist") != NULL, images);
        lines_fit(text);
        free(text);
    }
}

static void take(const char *command)
{
    cleanup_arena struct arena a = {0};
    struct config cfg;
    struct err err;
    const struct example_words *w = example_split(command, "trainer ");

    assert_true(w->argc >= 2);
    if (config_load(w->argv[1], &a, &cfg, &err) || config_options(w->argc - 2, w->argv + 2, &cfg, &err))
        fail_msg("%s: %s", command, err.msg);
}

static void examples_are_taken(void **state)
{
    (void)state;
    expect_examples(help_program_examples);
    for (const struct option_example *e = help_program_examples; e->command; e++)
        take(e->command);
    for (size_t i = 0; presets[i].name; i++) {
        cleanup_arena struct arena a = {0};
        struct help_examples examples;
        struct config cfg;
        struct err err;
        assert_int_equal(config_load(presets[i].name, &a, &cfg, &err), 0);
        help_preset_examples(&cfg, &examples);
        expect_examples(examples.list);
        for (const struct option_example *e = examples.list; e->command; e++)
            take(e->command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_names_presets_and_layers),
        cmocka_unit_test(a_preset_names_every_option),
        cmocka_unit_test(every_preset_shows_what_it_is),
        cmocka_unit_test(examples_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

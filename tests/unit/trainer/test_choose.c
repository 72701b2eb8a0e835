/* test_choose.c - `trainer choose`: counts what the scores say, by sum and by mean; lines that cannot be. */
#include "test.h"

#include "common/fsutil.h"
#include "generate/eval.h"
#include "trainer/checkpoint/export.h"
#include "trainer/command.h"
#include "trainer/generate/choice.h"
#include "trainer/model/gpt2.h"
#include "trainer/state_dict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char folder[64], weights[96], questions[96];
    struct model_spec spec;
    struct model *model;
    char *said;
};

/* A model of bytes with weights as a seed draws them, of which one class is likelier at every place. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    cleanup_arena struct arena a = {0};
    const struct gpt2_spec g = {.vocab = 256, .block_size = 16, .n_layer = 1, .n_head = 2, .n_embd = 16};
    struct torch_rng rng;
    struct err err;
    int rows;

    snprintf(f->folder, sizeof(f->folder), "/tmp/test_choose.XXXXXX");
    *state = f;
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->weights, sizeof(f->weights), "%s/w.safetensors", f->folder);
    snprintf(f->questions, sizeof(f->questions), "%s/q.jsonl", f->folder);
    gpt2_layers(&g, &f->spec);
    f->model = model_make(&f->spec, 1, &err);
    torch_rng_seed(&rng, 3);
    model_init(f->model, &rng);
    const struct state_row *row = model_state(f->model, &rows);
    for (int i = 0; i < rows; i++)
        if (strcmp(row[i].name, "transformer.ln_f.bias") == 0)
            for (int k = 0; k < 16; k++)
                ((float *)row[i].data)[k] = 1;
    for (int k = 0; k < 16; k++)
        ((float *)row[0].data)['y' * 16 + k] = 0.1f;
    struct tensor_list list = state_dict_model(f->model, false, &a);
    return export_safetensors(f->weights, &list, &err);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    model_free(f->model);
    free(f->said);
    free(f);
    return rc;
}

static int ask(struct fixture *f, char *path, const char *more, struct err *err)
{
    const struct command *c = command_find("choose");
    char option[64];
    char *const argv[] = {"--init_from", f->weights, "--heads=2", "--questions", path, option};
    size_t len;

    snprintf(option, sizeof(option), "%s", more ? more : "--threads=1");
    free(f->said);
    FILE *out = open_memstream(&f->said, &len);
    int rc = c->main(c, 6, argv, out, err);
    fclose(out);
    return rc;
}

static int choose(struct fixture *f, const char *questions, const char *more, struct err *err)
{
    assert_int_equal(fs_write_atomic(f->questions, questions, strlen(questions), err), 0);
    return ask(f, f->questions, more, err);
}

static void counts_what_the_scores_say(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    /* By sums the shortest wins, by means the one of the likelier byte. The third's answer is neither. */
    static const char text[] = "{\"ind\": 1, \"ctx\": \"a \\ud83d\\ude00\", \"endings\": [\"x\", "
                               "\"yyyyyy\"], \"label\": 0, \"more\": {\"a\": [1]}}\n"
                               "\n"
                               "{\"endings\": [\"x\", \"yyyyyy\"], \"label\": 1, \"ctx\": \"b\"}\n"
                               "{\"ctx\": \"long, longer than the model's positions\", \"endings\": [\"xx\", "
                               "\"x\", \"yyyyyyy\", \"xxxx\"], \"label\": 3}";

    if (choose(f, text, NULL, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(f->said, "3 questions: accuracy 0.3333 by sums, 0.3333 by means\n");
    assert_int_equal(choose(f, text, "--limit=1", &err), 0);
    assert_string_equal(f->said, "1 questions: accuracy 1.0000 by sums, 0.0000 by means\n");
}

/* Against the whole model's outputs; a context that is too long loses its front. */
static void scores_are_the_models(void **state)
{
    struct fixture *f = *state;
    const uint16_t context[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    const uint16_t ending[] = {'y', 20, 'y'};
    const struct kctx_options machine = {.threads = 1};
    struct err err;
    cleanup_kctx struct kctx *ctx = kctx_make(&machine, &err);
    cleanup_decoder struct decoder *d = decoder_make(f->model, ctx, 2, &err);
    static float logits[16 * 256];
    float x[16] = {0};
    const uint16_t other[] = {'z', 1};
    double want = 0;

    assert_int_equal(kctx_reserve(ctx, model_workspace_bytes(f->model, 1), &err), 0);
    for (int i = 0; i < 14; i++) /* 14 and 2: the model's 16 */
        x[i] = context[4 + i];
    x[14] = ending[0];
    x[15] = ending[1];
    model_forward(f->model, ctx, x, 1, NULL);
    model_head_outputs(f->model, ctx, logits);
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        const float *row = logits + (13 + i) * 256;
        for (int k = 0; k < 256; k++)
            sum += exp((double)row[k]);
        want += (double)row[ending[i]] - log(sum);
    }
    const struct choice_question q = {
        .context = {context, 18}, .ending = {{other, 2}, {ending, 3}, {other, 1}, {ending, 1}}, .endings = 4};
    double got[4], alone[4];
    assert_int_equal(choice_scores(d, &q, got, &err), 0);
    assert_true(fabs(got[1] - want) < 1e-5);
    /* No ending knows of those before it. */
    for (int i = 0; i < 4; i++) {
        const struct choice_question one = {
            .context = q.context, .ending = {q.ending[i], q.ending[i]}, .endings = 2};
        assert_int_equal(choice_scores(d, &one, alone, &err), 0);
        assert_true(fabs(alone[0] - got[i]) < 1e-5 && fabs(alone[1] - got[i]) < 1e-5);
    }
    const struct choice_question cannot[] = {
        {.context = q.ending[1], .ending = {q.ending[0], {context, 17}}, .endings = 2},
        {.ending = {q.ending[0], q.ending[1]}, .endings = 2},
        {.context = q.context, .ending = {q.ending[0], {0}}, .endings = 2},
        {.context = q.context, .ending = {{(const uint16_t[]){256}, 1}, q.ending[0]}, .endings = 2}};
    for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++)
        assert_int_equal(choice_scores(d, &cannot[i], got, &err), -1);
}

/* llm.c's file of tokens: the same questions give the same counts. */
static void tokens_of_llmc(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    char path[sizeof(f->folder) + 16];
    struct err err = {0};
    const char *const words[][3] = {{"a", " x", " yyyyyy"}, {"b", " x", " yyyyyy"}};

    eval_begin(&file, 2);
    for (int i = 0; i < 2; i++)
        eval_add(&file, i, i, 3, words[i]);
    snprintf(path, sizeof(path), "%s/q.bin", f->folder);
    assert_int_equal(fs_write_atomic(path, file.data, file.len, &err), 0);
    if (ask(f, path, NULL, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(f->said, "2 questions: accuracy 0.5000 by sums, 0.5000 by means\n");
    assert_int_equal(ask(f, path, "--limit=1", &err), 0);
    assert_string_equal(f->said, "1 questions: accuracy 1.0000 by sums, 0.0000 by means\n");
    eval_begin(&file, 1);
    eval_add(&file, 0, 0, 3, (const char *const[]){"a", " x", "0123456789abcdefg"});
    assert_int_equal(fs_write_atomic(path, file.data, file.len, &err), 0);
    assert_int_equal(ask(f, path, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "q.bin: question 0: an ending of 17 tokens, expected at most 16"));
}

static void lines_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "q.jsonl: no question in it"},
        {"\n[1]", "q.jsonl:2: expected an object"},
        {"{\"ctx\": 1}", "ctx: expected text"},
        {"{\"ctx\": \"\\ud83d\"}", "ctx: expected text"},
        {"{\"endings\": \"a\"}", "endings: expected a list of texts"},
        {"{\"endings\": [\"a\", 2]}", "endings[1]: expected text"},
        {"{\"label\": -1}", "label: expected a number from 0"},
        {"{\"ctx\": \"a\", \"endings\": [\"a\"], \"label\": 0}", "expected ctx, endings: 2..16, and label"},
        {"{\"ctx\": \"a\", \"endings\": [\"a\", \"b\"], \"label\": 2}",
         "and label: the number of one of them"},
        {"{\"ctx\": \"a\", \"endings\": [\"a\", \"b\"]}", "and label: the number of one of them"},
        {"{\"ctx\": \"\", \"endings\": [\"a\", \"b\"], \"label\": 1}", "expected a context and an ending"},
        {"{\"ctx\": \"a\", \"endings\": [\"a\", \"0123456789abcdefg\"], \"label\": 1}",
         "an ending of 18 tokens, expected at most 16"},
        {"{\"ctx\": \"a\", \"x\": }", "x: no JSON"},
        {"{\"ctx\": \"a\"} {", "expected the object's end"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = {0};
        assert_int_equal(choose(f, cases[i].text, NULL, &err), -1);
        if (!strstr(err.msg, cases[i].want))
            fail_msg("\"%s\", expected \"%s\"", err.msg, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_what_the_scores_say, setup, teardown),
        cmocka_unit_test_setup_teardown(scores_are_the_models, setup, teardown),
        cmocka_unit_test_setup_teardown(tokens_of_llmc, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_that_cannot_be, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

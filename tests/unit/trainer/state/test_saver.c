/* test_saver.c - what is written as a checkpoint, and what never is: weights or moments that are not finite. */
#include "test.h"

#include "common/arena.h"
#include "trainer/state/saver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const PARTS[] = {"weights", "exp_avg", "exp_avg_sq", "running statistics"};

struct fixture {
    char dir[40];
    struct model_spec spec;
    struct model *model;
    struct optim optim;
    struct cursor cursor;
    struct saver saver;
};

static struct layer_spec *append(struct model_spec *s, const struct layer_ops *ops, const char *name)
{
    struct layer_spec *l = &s->layer[s->layers++];

    *l = layer_spec_of(ops, name);
    return l;
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct optimizer_spec adam = {
        .type = OPTIMIZER_ADAM, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    struct err err = {0};
    int rows;

    strcpy(f->dir, "/tmp/saver-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->spec.input = (struct shape){.rows = 1, .cols = 1, .channels = 4, .flat = true};
    append(&f->spec, &layer_linear, "a")->option[0] = 8;
    append(&f->spec, &layer_batchnorm1d, "n");
    append(&f->spec, &layer_linear, "b")->option[0] = 3;
    f->model = model_make(&f->spec, 2, &err);
    if (!f->model)
        fail_msg("%s", err.msg);
    const struct param_row *row = model_params(f->model, &rows);
    assert_int_equal(optim_make(&f->optim, &adam, row, rows, &err), 0);
    f->cursor = (struct cursor){.epoch = 1};
    f->saver =
        (struct saver){.dir = f->dir, .keep = 3, .run_id = "run", .clock = clock_system(), .last_step = -1};
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *f = *state;
    char command[60];

    snprintf(command, sizeof(command), "rm -r %s", f->dir);
    assert_int_equal(system(command), 0);
    optim_release(&f->optim);
    model_free(f->model);
    free(f);
    return 0;
}

static int save(struct fixture *f, int64_t step, struct err *err)
{
    const struct snapshot s = {.model = f->model, .optim = &f->optim, .cursor = &f->cursor};

    f->cursor.step = step;
    return saver_save(&f->saver, &s, err);
}

static float *part_of(struct fixture *f, size_t i)
{
    return i == 0   ? model_values(f->model)
           : i == 1 ? f->optim.m
           : i == 2 ? f->optim.v
                    : model_buffers(f->model);
}

static void what_is_not_finite_is_never_the_newest(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct fixture *f = *state;
    struct err err = {0};
    int64_t step = 1;

    assert_int_equal(save(f, step, &err), 0);
    for (size_t part = 0; part < ARRAY_LEN(PARTS); part++)
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            cleanup_arena struct arena a = {0};
            struct ckpt_list list;
            float *at = part_of(f, part) + (part < 3 ? 5 * i : i);
            const float was = *at;
            *at = bad[i];
            if (save(f, ++step, &err) != -1 || !strstr(err.msg, "is not finite"))
                fail_msg("%s: %g was saved", PARTS[part], (double)bad[i]);
            *at = was;
            assert_int_equal(ckpt_list(f->dir, &a, &list, &err), 0);
            assert_int_equal(list.len, 1);
            assert_int_equal(list.entry[0].step, 1);
        }
    assert_int_equal(save(f, ++step, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_never_the_newest, make, unmake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* a_state.c - make and remove the state that checkpoints of these tests hold. */
#include "test.h"

#include "a_state.h"
#include "injected.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct layer_spec *append(struct model_spec *s, const struct layer_ops *ops, const char *name)
{
    struct layer_spec *l = &s->layer[s->layers++];

    *l = layer_spec_of(ops, name);
    return l;
}

int a_state_make(void **state)
{
    struct a_state *f = calloc(1, sizeof(*f));
    const struct optimizer_spec adam = optimizer_spec_of(&optimizer_adam, 0.1);
    struct err err = {0};

    injected = (struct injected){0};
    snprintf(f->dir, sizeof(f->dir), "%s/a_state-XXXXXX", scratch_home());
    assert_non_null(mkdtemp(f->dir));
    f->spec.input = (struct shape){.rows = 1, .cols = 1, .channels = 4, .flat = true};
    append(&f->spec, &layer_linear, "a")->option[0] = 8;
    append(&f->spec, &layer_batchnorm1d, "n");
    append(&f->spec, &layer_linear, "b")->option[0] = 3;
    f->model = model_make(&f->spec, 2, &err);
    if (!f->model)
        fail_msg("%s", err.msg);
    assert_int_equal(optim_make(&f->optim, &adam, f->model->row, f->model->rows, &err), 0);
    f->cursor = (struct cursor){.epoch = 1, .items = 4, .step_samples = 2};
    *state = f;
    return 0;
}

int a_state_remove(void **state)
{
    struct a_state *f = *state;
    char command[60];

    snprintf(command, sizeof(command), "rm -r %s", f->dir);
    assert_int_equal(system(command), 0);
    optim_release(&f->optim);
    model_free(f->model);
    free(f);
    return 0;
}

struct snapshot a_state_snapshot(struct a_state *f)
{
    return (struct snapshot){
        .model = f->model, .optim = &f->optim, .cursor = &f->cursor, .sums = f->sums, .n_sums = 2};
}

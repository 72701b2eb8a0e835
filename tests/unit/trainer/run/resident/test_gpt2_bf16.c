/* test_gpt2_bf16.c - GPT-2 in bf16 on a GPU or an emulated one: how far outputs, loss and every gradient are from f32, beside how
 * far PyTorch's own autocast is (tests/golden/torch/gpt2_bf16.py). */
#include "test.h"

#include "../../gpt2_golden.h"
#include "a_gpu.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "trainer/state/weights/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 8, LOSSES = 32, TIME = 32, VOCAB = 61, WIDTH = 32 };

/* How much farther from f32 than autocast a tensor may be. */
static const double MORE_THAN_AUTOCAST = 1.5;

static const struct gpu_plugin *plugin;

/* One network, on the CPU in f32 or on the device in bf16. */
struct net {
    struct kctx *ctx;
    struct model *model;
    enum element element;
    float *x, *grad;
    int32_t *labels;
    void *dforward, *logits;
};

/* What a network gives. */
struct results {
    float logits[SETS][TIME * VOCAB];
    float loss[LOSSES];
    float *grad[SETS];
};

static void *space(struct net *n, size_t bytes)
{
    struct err err = {0};
    void *p = device_alloc(n->ctx, bytes, &err);

    assert_non_null(p);
    return p;
}

static struct net open_net(struct golden *g, bool device)
{
    struct net n = {.element = device ? ELEMENT_BF16 : ELEMENT_F32};
    struct config *cfg = arena_array(&g->a, 1, struct config); /* the model reads it later, too */
    struct err err = {0};

    golden_config(g, golden_bf16_yaml, cfg);
    cfg->model.numbers = (struct model_numbers){.on_device = device, .element = n.element};
    n.model = model_make(&cfg->model, 1, &err);
    n.ctx = device ? plugin->context(0, PRECISION_F32, ELEMENT_BF16, &err)
                   : kctx_make(&(struct kctx_options){0}, &err);
    if (!n.model || !n.ctx || kctx_reserve(n.ctx, model_workspace_bytes(n.model, 1), &err))
        fail_msg("%s", err.msg);
    memcpy(n.model->values, golden_flat(g, n.model, "weights"), n.model->len * sizeof(float));
    if (model_to_device(n.model, n.ctx, &err))
        fail_msg("%s", err.msg);
    n.x = space(&n, TIME * sizeof(float));
    n.labels = space(&n, TIME * sizeof(int32_t));
    n.grad = space(&n, n.model->len * sizeof(float));
    n.dforward = space(&n, TIME * WIDTH * element_bytes(n.element));
    n.logits = space(&n, TIME * VOCAB * element_bytes(n.element));
    return n;
}

static void close_net(struct net *n)
{
    void *all[] = {n->x, n->labels, n->grad, n->dforward, n->logits};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        device_free(n->ctx, all[i]);
    model_free(n->model);
    kctx_free(n->ctx);
}

static void get(struct net *n, void *to, const void *from, size_t bytes)
{
    struct err err = {0};

    if (device_get(n->ctx, to, from, bytes, &err))
        fail_msg("%s", err.msg);
}

static void get_elements(struct net *n, float *to, const void *from, size_t len)
{
    static uint16_t half[TIME * VOCAB];

    if (n->element == ELEMENT_F32) {
        get(n, to, from, len * sizeof(float));
        return;
    }
    assert_true(len <= ARRAY_LEN(half));
    get(n, half, from, len * sizeof(*half));
    numbers_to_f32(half, PT_BF16, 0, len, to);
}

/* A sequence's tokens and the ones behind them. */
static void put_tokens(struct golden *g, struct net *n, int which)
{
    static int64_t tokens[LOSSES][TIME + 1];
    float x[TIME];
    int32_t labels[TIME];

    memcpy(tokens, golden_tensor(g, "tokens", (size_t)LOSSES * (TIME + 1))->data, sizeof(tokens));
    for (int i = 0; i < TIME; i++) {
        x[i] = (float)tokens[which][i];
        labels[i] = (int32_t)tokens[which][i + 1];
    }
    device_put(n->ctx, n->x, x, sizeof(x));
    device_put(n->ctx, n->labels, labels, sizeof(labels));
}

/* The loss of a sequence; of the first SETS of them all the rest, too. */
static void pass(struct golden *g, struct net *n, int which, struct results *r)
{
    struct err err = {0};
    struct queued_loss *at = device_is_host(n->ctx) ? NULL : device_alloc(n->ctx, sizeof(*at), &err), got;
    const struct head_target target = {.labels = n->labels, .share = 1.0F / TIME, .queued = at};
    const bool all = which < SETS;
    struct loss_result loss;

    put_tokens(g, n, which);
    const void *out = model_forward(n->model, n->ctx, n->x, 1, &(struct model_step){0});
    if (all)
        golden_logits(n->model, n->ctx, out, TIME, n->logits);
    if (model_head_loss(n->model, n->ctx, &target, all ? n->dforward : NULL, all ? n->grad : NULL, &loss,
                        &err))
        fail_msg("%s", err.msg);
    if (at) {
        get(n, &got, at, sizeof(got));
        loss.sum = got.sum;
        device_free(n->ctx, at);
    }
    r->loss[which] = (float)(loss.sum / TIME);
    if (!all)
        return;
    model_backward(n->model, n->ctx, n->dforward, n->grad, NULL);
    r->grad[which] = arena_array(&g->a, n->model->len, float);
    get(n, r->grad[which], n->grad, n->model->len * sizeof(float));
    get_elements(n, r->logits[which], n->logits, TIME * VOCAB);
}

static void all_passes(struct golden *g, bool device, struct results *r)
{
    struct net n = open_net(g, device);

    for (int i = 0; i < LOSSES; i++)
        pass(g, &n, i, r);
    close_net(&n);
}

/* The same part of every gradient as one tensor. */
static double pooled(float *const *got, float *const *want, size_t offset, size_t len)
{
    double wrong = 0, all = 0;

    for (int set = 0; set < SETS; set++)
        for (size_t i = offset; i < offset + len; i++) {
            wrong += pow((double)got[set][i] - (double)want[set][i], 2);
            all += pow((double)want[set][i], 2);
        }
    return sqrt(wrong / all);
}

/* How many times autocast's error. */
static double compare(struct golden *g, const char *name, double error)
{
    double autocast = golden_number(g, arena_printf(&g->a, "errors/%s", name));

    if (!(error <= MORE_THAN_AUTOCAST * autocast))
        fail_msg("%s: off by %.3g of it, autocast by %.3g: expected at most %g times that", name, error,
                 autocast, MORE_THAN_AUTOCAST);
    return error / autocast;
}

static void errors_are_not_far_above_autocasts(void **state)
{
    static struct results want, got;
    struct golden g;
    struct config cfg;
    struct err err = {0};
    float recorded[LOSSES];

    (void)state;
    golden_open(&g, "gpt2_bf16.safetensors");
    all_passes(&g, false, &want);
    golden_take(&g, "loss", recorded, LOSSES);
    for (int i = 0; i < LOSSES; i++)
        assert_true(fabs((double)want.loss[i] / (double)recorded[i] - 1) < 1e-6);
    golden_config(&g, golden_bf16_yaml, &cfg);
    cleanup_model struct model *m = model_make(&cfg.model, 1, &err);
    const struct param_row *row = m->row;
    for (int cublas = 0; cublas < 2; cublas++) {
        if (!cublas)
            setenv("TK_CUBLAS", "off", 1);
        all_passes(&g, true, &got);
        unsetenv("TK_CUBLAS");
        compare(&g, "logits", golden_distance(*got.logits, *want.logits, (size_t)SETS * TIME * VOCAB));
        compare(&g, "loss", golden_distance(got.loss, want.loss, LOSSES));
        double worst = 0;
        for (int i = 0; i < m->rows; i++)
            worst =
                fmax(worst, compare(&g, row[i].name, pooled(got.grad, want.grad, row[i].offset, row[i].len)));
        print_message("gradients: at most %.2f times autocast's error\n", worst);
    }
    golden_close(&g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_not_far_above_autocasts),
    };

    assert_int_equal(argc, 2);
    int none = a_gpu(argv[1], &plugin);
    return none ? none : cmocka_run_group_tests(tests, NULL, NULL);
}

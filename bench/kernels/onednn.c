/* onednn.c - a layer by oneDNN at its best: it chooses every layout itself, and what that costs at the borders to other
 * layers, and for weights that change with each step, is not timed. */

#include "peers.h"

#include <dnnl.h>
#include <stdlib.h>

enum { ARGS_MAX = 4, MEMORIES_MAX = 24, OPS = 3 };

/* Tensors as `data` has them, and with the layout left open. */
struct tensors {
    dnnl_memory_desc_t in, weight, bias, out;
};

struct op {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t call;
    dnnl_exec_arg_t arg[ARGS_MAX];
    int args;
};

struct one {
    const struct bench_layer *l;
    const struct bench_data *data;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct tensors plain, open;
    struct op forward, weights, input;
    dnnl_memory_t memory[MEMORIES_MAX];
    int memories;
};

static void must(dnnl_status_t status)
{
    if (status != dnnl_success)
        abort(); /* shapes are the presets': what fails here is the benchmark's mistake, or memory */
}

static dnnl_memory_desc_t describe(const struct one *o, const dnnl_dims_t dims, dnnl_format_tag_t plain,
                                   bool open)
{
    dnnl_memory_desc_t md;

    must(dnnl_memory_desc_init_by_tag(&md, o->l->linear ? 2 : 4, dims, dnnl_f32,
                                      open ? dnnl_format_tag_any : plain));
    return md;
}

static struct tensors tensors_of(const struct one *o, bool open)
{
    const struct conv2d_shape *s = &o->l->s;
    const bool flat = o->l->linear;
    const dnnl_dims_t in = {s->batch, s->in_c, s->in_h, s->in_w};
    const dnnl_dims_t weight = {s->out_c, s->in_c, s->k_h, s->k_w};
    const dnnl_dims_t out = {s->batch, s->out_c, conv2d_out_h(s), conv2d_out_w(s)};
    const dnnl_dims_t bias = {s->out_c};
    struct tensors t = {.in = describe(o, in, flat ? dnnl_nc : dnnl_nhwc, open),
                        .weight = describe(o, weight, flat ? dnnl_oi : dnnl_oihw, open),
                        .out = describe(o, out, flat ? dnnl_nc : dnnl_nhwc, open)};

    must(dnnl_memory_desc_init_by_tag(&t.bias, 1, bias, dnnl_f32, dnnl_x));
    return t;
}

static dnnl_memory_t new_memory(struct one *o, const dnnl_memory_desc_t *md, void *at)
{
    if (o->memories == MEMORIES_MAX)
        abort();
    must(dnnl_memory_create(&o->memory[o->memories], md, o->engine, at));
    return o->memory[o->memories++];
}

/* From one layout to another. */
static void reorder(struct one *o, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_memory_desc_t *from_md, *to_md;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t call;
    const dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};

    must(dnnl_memory_get_memory_desc(from, &from_md));
    must(dnnl_memory_get_memory_desc(to, &to_md));
    must(dnnl_reorder_primitive_desc_create(&desc, from_md, o->engine, to_md, o->engine, NULL));
    must(dnnl_primitive_create(&call, desc));
    must(dnnl_primitive_execute(call, o->stream, 2, arg));
    must(dnnl_stream_wait(o->stream));
    dnnl_primitive_destroy(call);
    dnnl_primitive_desc_destroy(desc);
}

/* An operand in the layout the primitive wants; `at`: filled from there, NULL: a result. */
static void operand(struct one *o, struct op *op, int arg, dnnl_query_t what, int index,
                    const dnnl_memory_desc_t *plain, float *at)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(op->desc, what, index);
    dnnl_memory_t m = new_memory(o, md, DNNL_MEMORY_ALLOCATE);

    if (at)
        reorder(o, new_memory(o, plain, at), m);
    op->arg[op->args++] = (dnnl_exec_arg_t){arg, m};
}

static void read_result(struct one *o, const struct op *op, int arg, const dnnl_memory_desc_t *plain,
                        float *to)
{
    dnnl_memory_t m;

    must(dnnl_memory_create(&m, plain, o->engine, to));
    for (int i = 0; i < op->args; i++)
        if (op->arg[i].arg == arg)
            reorder(o, op->arg[i].memory, m);
    dnnl_memory_destroy(m);
}

static void make_op(struct one *o, struct op *op, const_dnnl_op_desc_t of, bool relu, const struct op *hint)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;

    must(dnnl_primitive_attr_create(&attr));
    must(dnnl_post_ops_create(&post));
    if (relu)
        must(dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0));
    must(dnnl_primitive_attr_set_post_ops(attr, post));
    must(dnnl_primitive_desc_create(&op->desc, of, attr, o->engine, hint ? hint->desc : NULL));
    must(dnnl_primitive_create(&op->call, op->desc));
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
}

static void make_linear(struct one *o)
{
    const struct tensors *t = &o->open;
    dnnl_inner_product_desc_t d;

    must(dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, &t->in, &t->weight, &t->bias,
                                              &t->out));
    make_op(o, &o->forward, &d, o->l->relu, NULL);
    must(dnnl_inner_product_backward_weights_desc_init(&d, &t->in, &t->weight, &t->bias, &t->out));
    make_op(o, &o->weights, &d, false, &o->forward);
    must(dnnl_inner_product_backward_data_desc_init(&d, &t->in, &t->weight, &t->out));
    if (!o->l->first)
        make_op(o, &o->input, &d, false, &o->forward);
}

static void make_conv(struct one *o)
{
    static const dnnl_dims_t stride = {1, 1}, pad = {0, 0};
    const struct tensors *t = &o->open;
    dnnl_convolution_desc_t d;

    must(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_auto, &t->in,
                                            &t->weight, &t->bias, &t->out, stride, pad, pad));
    make_op(o, &o->forward, &d, o->l->relu, NULL);
    must(dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_auto, &t->in, &t->weight, &t->bias,
                                                     &t->out, stride, pad, pad));
    make_op(o, &o->weights, &d, false, &o->forward);
    must(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_auto, &t->in, &t->weight, &t->out,
                                                  stride, pad, pad));
    if (!o->l->first)
        make_op(o, &o->input, &d, false, &o->forward);
}

static void give_operands(struct one *o)
{
    const struct tensors *t = &o->plain;
    const struct bench_data *d = o->data;
    struct op *f = &o->forward, *w = &o->weights, *in = &o->input;

    operand(o, f, DNNL_ARG_SRC, dnnl_query_src_md, 0, &t->in, d->in);
    operand(o, f, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0, &t->weight, d->weight);
    operand(o, f, DNNL_ARG_BIAS, dnnl_query_weights_md, 1, &t->bias, d->bias);
    operand(o, f, DNNL_ARG_DST, dnnl_query_dst_md, 0, &t->out, NULL);
    operand(o, w, DNNL_ARG_SRC, dnnl_query_src_md, 0, &t->in, d->in);
    operand(o, w, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0, &t->out, d->dout);
    operand(o, w, DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0, &t->weight, NULL);
    operand(o, w, DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1, &t->bias, NULL);
    if (o->l->first)
        return;
    operand(o, in, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0, &t->out, d->dout);
    operand(o, in, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0, &t->weight, d->weight);
    operand(o, in, DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0, &t->in, NULL);
}

static void *one_make(const struct bench_layer *l, const struct bench_data *data, struct err *err)
{
    struct one *o = calloc(1, sizeof(*o));

    (void)err;
    if (!o)
        abort();
    o->l = l;
    o->data = data;
    must(dnnl_engine_create(&o->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags));
    o->plain = tensors_of(o, false);
    o->open = tensors_of(o, true);
    if (l->linear)
        make_linear(o);
    else
        make_conv(o);
    give_operands(o);
    return o;
}

static void one_free(void *p)
{
    struct one *o = p;
    struct op *ops[OPS] = {&o->forward, &o->weights, &o->input};

    for (int i = 0; i < OPS; i++)
        if (ops[i]->call) {
            dnnl_primitive_destroy(ops[i]->call);
            dnnl_primitive_desc_destroy(ops[i]->desc);
        }
    for (int i = 0; i < o->memories; i++)
        dnnl_memory_destroy(o->memory[i]);
    dnnl_stream_destroy(o->stream);
    dnnl_engine_destroy(o->engine);
    free(o);
}

static void execute(struct one *o, const struct op *op)
{
    if (op->call)
        must(dnnl_primitive_execute(op->call, o->stream, op->args, op->arg));
}

static void one_forward(void *p)
{
    struct one *o = p;

    execute(o, &o->forward);
    must(dnnl_stream_wait(o->stream));
}

static void one_backward(void *p)
{
    struct one *o = p;

    execute(o, &o->weights);
    execute(o, &o->input);
    must(dnnl_stream_wait(o->stream));
}

static void one_result(void *p, const struct bench_result *to)
{
    struct one *o = p;

    read_result(o, &o->forward, DNNL_ARG_DST, &o->plain.out, to->out);
    read_result(o, &o->weights, DNNL_ARG_DIFF_WEIGHTS, &o->plain.weight, to->dweight);
    if (!o->l->first)
        read_result(o, &o->input, DNNL_ARG_DIFF_SRC, &o->plain.in, to->din);
}

const struct bench_peer bench_onednn = {"oneDNN", one_make, one_forward, one_backward, one_result, one_free};

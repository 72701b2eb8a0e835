/* peers.h - the presets' layers, and the libraries that kernels-bench measures: this project's kernels and, with
 * TK_BENCH_PEERS, oneDNN and OpenBLAS.
 *
 * Ownership: a peer keeps its own copies and results from make to free; `data` is borrowed meanwhile.
 * Layouts:   in `data` and in results as in kernels/conv2d.h; what a peer uses inside is its business, and changing
 *            from one to the other is never timed.
 */
#ifndef TK_BENCH_KERNELS_PEERS_H
#define TK_BENCH_KERNELS_PEERS_H

#include "kernels/conv2d.h"

/* A linear layer is a convolution of one pixel by a kernel of one. */
struct bench_layer {
    const char *preset, *name;
    struct conv2d_shape s;
    bool linear, relu;
    bool first; /* its input's gradient is not wanted */
};

static inline size_t bench_in(const struct conv2d_shape *s)
{
    return (size_t)s->batch * (size_t)s->in_h * (size_t)s->in_w * (size_t)s->in_c;
}

/* Products of one row of windows: the length of a kernel. */
static inline size_t bench_window(const struct conv2d_shape *s)
{
    return (size_t)s->k_h * (size_t)s->k_w * (size_t)s->in_c;
}

static inline size_t bench_pixels(const struct conv2d_shape *s)
{
    return (size_t)s->batch * (size_t)conv2d_out_h(s) * (size_t)conv2d_out_w(s);
}

static inline size_t bench_out(const struct conv2d_shape *s)
{
    return bench_pixels(s) * (size_t)s->out_c;
}

static inline size_t bench_weight(const struct conv2d_shape *s)
{
    return bench_window(s) * (size_t)s->out_c;
}

struct bench_data {
    float *in, *weight, *bias, *dout;
};

/* Where results are wanted; a peer leaves what it does not compute as it is. */
struct bench_result {
    float *out, *dweight, *din;
};

struct bench_peer {
    const char *name;
    void *(*make)(const struct bench_layer *l, const struct bench_data *data, struct err *err);
    void (*forward)(void *p);
    void (*backward)(void *p);
    void (*result)(void *p, const struct bench_result *to);
    void (*free)(void *p);
};

extern const struct bench_peer bench_ours, bench_onednn, bench_openblas;

const char *bench_openblas_core(void);

/* n numbers, 64-byte aligned; aborts without memory: a benchmark has nothing better to do. */
float *bench_floats(size_t n);

#endif

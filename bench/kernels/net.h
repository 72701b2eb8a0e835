/* net.h - the networks that kernels-bench times: every operation of a training step, in order. */
#ifndef TK_BENCH_KERNELS_NET_H
#define TK_BENCH_KERNELS_NET_H

#include "kernels/kctx.h"

struct net;

/* "cnn" (1-32-64-64 k3, 576-64-10, Adam) or "mlp" (784-512-512-10, SGD), with random data. NULL for another name.
 */
struct net *net_make(const char *name, int batch, struct err *err) MUST_CHECK;
void net_free(struct net *net);
size_t net_workspace_bytes(const struct net *net);

int net_ops(const struct net *net);
const char *net_op_name(const struct net *net, int op);
double net_op_flop(const struct net *net, int op); /* 0: bound by memory */
void net_op_run(struct net *net, struct kctx *ctx, int op);

#endif

/* event_kinds.h - encode TensorBoard events beyond scalars: histograms, images, text, graphs, hyperparameters. Pure.
 *
 * Errors: as event_encode.h.
 */
#ifndef TK_TRAINER_EVENTS_EVENT_KINDS_H
#define TK_TRAINER_EVENTS_EVENT_KINDS_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_place {
    double wall_time_s;
    int64_t step;
    const char *tag;
    bool first; /* add the tag's metadata */
};

enum { EVENT_BUCKETS = 30, EVENT_VALUE_BYTES = 1 << 18 };

/* EVENT_BUCKETS of equal width from the least to the greatest of n values; what is not finite is left out. */
int event_encode_histogram(const struct event_place *at, const float *values, size_t n, struct buf *out,
                           struct err *err) MUST_CHECK;

/* One PNG. */
int event_encode_image(const struct event_place *at, const struct buf *png, int width, int height,
                       struct buf *out, struct err *err) MUST_CHECK;

/* Markdown. */
int event_encode_text(const struct event_place *at, const char *text, struct buf *out,
                      struct err *err) MUST_CHECK;

struct event_hparam {
    const char *name;
    const char *text; /* NULL: the number */
    double number;
};

/* One session of the hyperparameters dashboard; `group` joins sessions of the same run. */
int event_encode_hparams(double wall_time_s, const char *group, const struct event_hparam *h, size_t n,
                         struct buf *out, struct err *err) MUST_CHECK;

struct event_node {
    const char *name, *op;
    const char *input; /* name of the node before it; NULL: none */
};

int event_encode_graph(double wall_time_s, const struct event_node *node, size_t n, struct buf *out,
                       struct err *err) MUST_CHECK;

/* What readers have seen of this step and later ones, in this folder, is void. */
int event_encode_restart(double wall_time_s, int64_t step, struct buf *out, struct err *err) MUST_CHECK;

#endif

/* metrics.h - write this operator's metrics in Prometheus' text format; prometheus.h has those common to all
 * controllers.
 *
 * The only label whose values users choose is the namespace; at most 100 namespaces are named, see metrics.c.
 */
#ifndef TK_OPERATOR_METRICS_H
#define TK_OPERATOR_METRICS_H

#include "common/buf.h"
#include "operator/controller.h"

struct metrics_sources {
    const struct controller *controller;
    const struct kube_recorder *recorder;
    const char *version;
};

/* As prometheus_write. */
void metrics_write(const struct metrics_sources *s, struct buf *out);

#endif

/* metrics.h - what only this operator counts, as Prometheus text; prometheus.h has what every controller counts. The one
 * label with a value that users choose is a namespace, of which 100 are named at a time: phases.h. */
#ifndef TK_OPERATOR_METRICS_H
#define TK_OPERATOR_METRICS_H

#include "common/buf.h"
#include "operator/controller.h"

struct metrics_sources {
    const struct controller *controller;
    const struct kube_recorder *recorder;
    const char *version;
};

int metrics_write(const struct metrics_sources *s, struct buf *out, struct err *err) MUST_CHECK;

#endif

/* naming.h - names of a job's pods, Service and TensorBoard. Pure. */
#ifndef TK_OPERATOR_PLAN_NAMING_H
#define TK_OPERATOR_PLAN_NAMING_H

#include "common/arena.h"

char *naming_pod(struct arena *a, const char *job, const char *type, int index); /* <job>-<type>-<index> */
char *naming_service(struct arena *a, const char *job);                          /* <job>-rdzv */
char *naming_tensorboard(struct arena *a, const char *job);                      /* <job>-tensorboard */

#endif

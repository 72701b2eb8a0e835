/* naming.c - the deterministic names of a job's children: a second create meets AlreadyExists. */
#include "operator/plan/naming.h"

char *naming_pod(struct arena *a, const char *job, const char *type, int index)
{
    return arena_printf(a, "%s-%s-%d", job, type, index);
}

char *naming_service(struct arena *a, const char *job)
{
    return arena_printf(a, "%s-rdzv", job);
}

char *naming_tensorboard(struct arena *a, const char *job)
{
    return arena_printf(a, "%s-tensorboard", job);
}

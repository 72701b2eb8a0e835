/* phases.c - count jobs by namespace and phase, with a limit of named namespaces. */
#include "operator/phases.h"

#include <stdlib.h>
#include <string.h>

static int by_namespace(const void *a, const void *b)
{
    return strcmp((*(const struct jobtext *const *)a)->ns, (*(const struct jobtext *const *)b)->ns);
}

static int by_size(const void *a, const void *b)
{
    const struct phases_row *x = a;
    const struct phases_row *y = b;

    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return strcmp(x->ns, y->ns);
}

static void add(struct phases_row *to, const struct phases_row *from)
{
    to->jobs += from->jobs;
    for (int i = 0; i < JOB_PHASES; i++)
        to->by_phase[i] += from->by_phase[i];
}

const struct phases_row *phases_count(const struct kube_store *jobs, struct arena *a, size_t *ret_n)
{
    size_t n_jobs = 0;
    size_t n = 0;
    const struct jobtext **list = arena_array(a, kube_store_count(jobs) + 1, const struct jobtext *);

    for (const struct kube_store_entry *e = kube_store_first(jobs); e; e = kube_store_next(jobs, e))
        list[n_jobs++] = e->value;
    qsort(list, n_jobs, sizeof(const struct jobtext *), by_namespace);
    struct phases_row *rows = arena_array(a, n_jobs + 1, struct phases_row);
    for (size_t i = 0; i < n_jobs; i++) {
        if (n == 0 || strcmp(rows[n - 1].ns, list[i]->ns) != 0)
            rows[n++].ns = list[i]->ns;
        rows[n - 1].jobs++;
        rows[n - 1].by_phase[list[i]->phase]++;
    }
    qsort(rows, n, sizeof(*rows), by_size);
    struct phases_row others = {.ns = ""};
    for (; n > PHASES_NAMESPACES; n--)
        add(&others, &rows[n - 1]);
    if (others.jobs)
        rows[n++] = others;
    *ret_n = n;
    return rows;
}

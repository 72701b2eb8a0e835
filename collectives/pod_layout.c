/* pod_layout.c - check the ranks' reported positions and group them into pods of consecutive ranks. */
#include "collectives/pod_layout.h"
#include "common/memory.h"

#include <stdbool.h>
#include <stdlib.h>

static int check_rank(const struct rank_member *members, int world, int first, int rank, struct err *err)
{
    const struct rank_member *head = &members[first], *m = &members[rank];

    if (m->group != head->group)
        return err_set(
            err, ERR_INVALID,
            "rank %d has GROUP_RANK %d, expected %d: LOCAL_WORLD_SIZE of rank %d is %d, and the ranks of "
            "one pod must be consecutive",
            rank, m->group, head->group, first, head->per_group);
    if (head->per_group < 1 || head->per_group > world - first)
        return err_set(err, ERR_INVALID, "rank %d has LOCAL_WORLD_SIZE %d, expected 1..%d", first,
                       head->per_group, world - first);
    if (m->local != rank - first || m->per_group != head->per_group)
        return err_set(
            err, ERR_INVALID,
            "rank %d has LOCAL_RANK %d of LOCAL_WORLD_SIZE %d, expected %d of %d, as rank %d of the same "
            "pod has it",
            rank, m->local, m->per_group, rank - first, head->per_group, first);
    return 0;
}

static int check_groups(const struct pod_layout *l, const struct rank_member *members, struct err *err)
{
    for (int a = 0; a < l->n_pods; a++)
        for (int b = 0; b < a; b++)
            if (members[l->first[a]].group == members[l->first[b]].group)
                return err_set(
                    err, ERR_INVALID,
                    "ranks %d and %d have GROUP_RANK %d and are not of one pod: expected one for each pod",
                    l->first[b], l->first[a], members[l->first[a]].group);
    return 0;
}

static bool is_unshared(const struct rank_member *members, int first, int end)
{
    for (int r = first; r < end; r++)
        if (members[r].alone || members[r].net != members[first].net)
            return true;
    return false;
}

/* Replace each pod whose ranks cannot share memory by one pod per rank. */
static void split(struct pod_layout *l, const struct rank_member *members, int world)
{
    int *first = memory_must(calloc((size_t)world + 1, sizeof(*first))), n = 0;

    for (int pod = 0; pod < l->n_pods; pod++) {
        const int begin = l->first[pod], end = l->first[pod + 1];
        const bool unshared = end - begin > 1 && is_unshared(members, begin, end);
        for (int r = begin; r < (unshared ? end : begin + 1); r++)
            first[n++] = r;
        l->lanes = unshared ? 1 : l->lanes;
    }
    first[n] = world;
    free(l->first);
    l->first = first;
    l->n_pods = n;
}

int pod_layout_make(struct pod_layout *l, const struct rank_member *members, int world, struct err *err)
{
    int rc = 0;

    *l = (struct pod_layout){.first = memory_must(calloc((size_t)world + 1, sizeof(*l->first))),
                             .lanes = POD_LANES_MAX};
    for (int r = 0, first = 0; r < world && rc == 0; r++) {
        if (r == first) {
            l->first[l->n_pods++] = r;
            l->lanes = members[r].per_group < l->lanes ? members[r].per_group : l->lanes;
        }
        rc = check_rank(members, world, first, r, err);
        if (r + 1 == first + members[first].per_group)
            first = r + 1;
    }
    l->first[l->n_pods] = world;
    if (rc == 0)
        rc = check_groups(l, members, err);
    if (rc == 0)
        split(l, members, world);
    else
        pod_layout_release(l);
    return rc;
}

void pod_layout_release(struct pod_layout *l)
{
    free(l->first);
    *l = (struct pod_layout){0};
}

int pod_layout_of(const struct pod_layout *l, int rank)
{
    int low = 0, high = l->n_pods - 1;

    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (l->first[mid] <= rank)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

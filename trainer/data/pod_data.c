/* pod_data.c - load a data set into shared memory once per pod; the pod's other ranks map it. */
#include "trainer/data/pod_data.h"

#include "collectives/noted.h"
#include "common/memory.h"
#include "trainer/data/kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The message that each rank sends to the others. */
struct offer {
    uint32_t fingerprint;
    int32_t local_rank;
    int32_t loaded; /* local rank 0: 1, or 0 when it failed */
    int32_t pid;
    int32_t fd;                /* the data are at offset KEPT_HEAD_BYTES */
    struct data_layout layout; /* of the loaded data */
};

/* Find or load decoded data: on local rank 0 in the launcher's memory, else in this process's. */
static int load_decoded(struct pod_data *d, const struct pod_data_options *o, const struct source *s,
                        struct err *err)
{
    const struct data_layout *layout = &s->layout;
    cleanup_buf struct buf key = BUF_INIT(KEPT_KEY_BYTES);
    cleanup_kept struct kept *k = o->local_rank == 0 ? kept_open(o->kept) : NULL;
    const bool keyed = k && source_key(s, o->now_ms, &key);

    d->found = keyed && kept_find(k, &key, layout, &d->set);
    if (!d->found) {
        if (!keyed || !kept_make(k, &key, layout, &d->set)) {
            kept_free(k);
            k = kept_own(layout, &d->set, err);
        }
        if (!k || source_load(s, &d->set, err))
            return -1;
        kept_complete(k, d->set.layout.classes);
    }
    d->memory = TAKE(k);
    return 0;
}

static int load(struct pod_data *d, const struct pod_data_options *o, struct err *err)
{
    cleanup_source struct source *s = pod_data_find(o, err);

    if (!s)
        return -1;
    if (!s->layout.steps)
        return load_decoded(d, o, s, err);
    d->set = layout_view(&s->layout, NULL);
    if (source_load(s, &d->set, err))
        return -1;
    d->source = TAKE(s);
    return 0;
}

/* Map the memory of the rank that made `offer`. False: not possible here. */
static bool borrow(struct pod_data *d, const struct offer *offer)
{
    char path[64];
    const size_t bytes = layout_bytes(&offer->layout);

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", offer->pid, offer->fd);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || lseek(fd, 0, SEEK_END) < (off_t)(KEPT_HEAD_BYTES + bytes))
        return false;
    void *mem = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, KEPT_HEAD_BYTES);
    if (mem == MAP_FAILED)
        return false;
    *d = (struct pod_data){.set = layout_view(&offer->layout, mem), .borrowed = mem, .bytes = bytes};
    return true;
}

static int check_offers(const struct offer *all, struct collectives *comm, int leader, struct err *err)
{
    for (int r = 0; r < comm->world; r++)
        if (all[r].fingerprint != all[0].fingerprint)
            return err_set(err, ERR_INVALID, "ranks 0 and %d were started with different models or options",
                           r);
    for (int r = 0; r < comm->world; r++)
        if (all[r].local_rank == 0 && !all[r].loaded && r != comm->rank)
            return err_set(err, ERR_PEER, "rank %d could not load the data set", r);
    for (int r = 0; r < comm->world; r++)
        if (all[r].loaded && !layout_same(&all[r].layout, &all[0].layout))
            return err_set(err, ERR_INVALID, "ranks 0 and %d have data sets of different sizes", r);
    if (leader < 0 || all[leader].local_rank != 0)
        return err_set(err, ERR_INVALID, "LOCAL_RANK: %d on rank %d: rank %d should have LOCAL_RANK 0",
                       all[comm->rank].local_rank, comm->rank, leader);
    return 0;
}

/* Exchange offers with all ranks. *err on entry: this rank's failure to load, if any. */
static int exchange(const struct offer *mine, struct offer *all, struct collectives *comm, int64_t timeout_ms,
                    const struct err *own, struct err *err)
{
    int failed = collectives_all_gather(comm, mine, sizeof(*mine), all, timeout_ms, err);

    if (own->kind)
        *err = *own;
    return failed || own->kind ? -1 : check_offers(all, comm, comm->rank - mine->local_rank, err);
}

/* On the other ranks of a pod: map local rank 0's data, else load a copy; the files may have changed
 * meanwhile. */
static int follow(struct pod_data *d, const struct pod_data_options *o, int rank, const struct offer *leader,
                  struct err *err)
{
    /* The layout comes from another process: it must not make this one read beyond the mapping. */
    if (layout_check(&leader->layout, err))
        return -1;
    if (!leader->layout.steps && borrow(d, leader))
        return 0;
    if (load(d, o, err))
        return -1;
    return layout_same(&d->set.layout, &leader->layout)
               ? 0
               : err_set(err, ERR_INVALID, "ranks %d and %d have data sets of different sizes",
                         rank - o->local_rank, rank);
}

int pod_data_open(struct pod_data *d, struct collectives *comm, const struct pod_data_options *o,
                  struct err *err)
{
    struct offer mine = {
        .fingerprint = o->fingerprint, .local_rank = o->local_rank, .pid = getpid(), .fd = -1};
    cleanup_free struct offer *all = memory_must(calloc((size_t)comm->world, sizeof(*all)));
    struct err own = {0};

    *d = (struct pod_data){0};
    if (o->local_rank == 0) {
        mine.loaded = !load(d, o, &own);
        mine.layout = d->set.layout;
        mine.fd = d->memory ? d->memory->fd : -1;
    }
    int failed = exchange(&mine, all, comm, o->timeout_ms, &own, err);
    if (!failed && o->local_rank != 0 && follow(d, o, comm->rank, &all[comm->rank - o->local_rank], &own))
        *err = own;
    if (!failed)
        failed = collectives_barrier(comm, o->timeout_ms, own.kind ? &(struct err){0} : err) || own.kind;
    if (failed)
        pod_data_close(d);
    return failed ? -1 : 0;
}

void pod_data_close(struct pod_data *d)
{
    if (d->borrowed)
        munmap(d->borrowed, d->bytes);
    source_free(d->source);
    kept_free(d->memory);
    *d = (struct pod_data){0};
}

/* pod_data.c - load a data set into shared memory once per pod; the pod's other ranks map it. */
#include "trainer/data/pod_data.h"

#include "collectives/noted.h"
#include "trainer/data/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What each rank tells the others. */
struct offer {
    uint32_t fingerprint;
    int32_t local_rank;
    int32_t loaded; /* local rank 0: 1, or 0 when it failed */
    int32_t pid;
    int32_t fd;
    int32_t kept; /* fd is that of the launcher's memory, in which the data begin at KEPT_HEAD_BYTES */
    struct data_layout layout; /* of what was loaded */
};

/* Where memory files are forbidden the others load their own. */
static int make_own_memory(struct pod_data *d, size_t bytes, struct err *err)
{
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED)
        return err_errno(err, ERR_FATAL, errno, "cannot map %zu bytes for the data set", bytes);
    d->mem = mem;
    d->bytes = bytes;
    return 0;
}

/* Anonymous memory with a descriptor that others can open; its size is fixed by seals. */
static int make_memory(struct pod_data *d, size_t bytes, int *ret_fd, struct err *err)
{
    cleanup_close int fd = memfd_create("dataset", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
        return make_own_memory(d, bytes, err);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))
        return err_errno(err, ERR_FATAL, errno, "no memory of %zu bytes for the data set", bytes);
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED)
        return err_errno(err, ERR_FATAL, errno, "cannot map %zu bytes for the data set", bytes);
    d->mem = mem;
    d->bytes = bytes;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* From the launcher's memory, or into it. 1: done; 0: it cannot be used; -1: the data cannot be loaded. */
static int load_kept(struct pod_data *d, const struct pod_data_options *o, const struct source *s,
                     struct err *err)
{
    cleanup_kept struct kept *k = kept_open(o->kept);
    cleanup_buf struct buf key = BUF_INIT(KEPT_KEY_BYTES);

    if (!k || !source_key(s, o->now_ms, &key))
        return 0;
    d->found = kept_find(k, &key, source_layout(s), &d->set);
    if (!d->found) {
        if (!kept_make(k, &key, source_layout(s), &d->set))
            return 0;
        if (source_load(s, &d->set, err)) {
            *d = (struct pod_data){0};
            return -1;
        }
        kept_complete(k, d->set.layout.classes);
    }
    d->kept = TAKE(k);
    return 1;
}

static int load(struct pod_data *d, const struct pod_data_options *o, int *ret_fd, struct err *err)
{
    cleanup_source struct source *s = pod_data_find(o, err);
    cleanup_close int fd = -1;

    if (s && source_layout(s)->steps) {
        d->set = layout_view(source_layout(s), NULL);
        if (source_load(s, &d->set, err))
            return -1;
        d->source = TAKE(s);
        return 0;
    }
    int kept = s && o->local_rank == 0 ? load_kept(d, o, s, err) : 0;
    if (kept)
        return kept < 0 ? -1 : 0;
    if (!s || make_memory(d, layout_bytes(source_layout(s)), &fd, err))
        return -1;
    d->set = layout_view(source_layout(s), d->mem);
    if (source_load(s, &d->set, err)) {
        pod_data_close(d);
        return -1;
    }
    mprotect(d->mem, d->bytes, PROT_READ);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Map the memory of the rank that made `offer`. False: not possible here. */
static bool borrow(struct pod_data *d, const struct offer *offer)
{
    char path[64];
    const off_t begin = offer->kept ? KEPT_HEAD_BYTES : 0;
    size_t bytes = layout_bytes(&offer->layout);

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", offer->pid, offer->fd);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    const off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (offer->kept ? end < begin + (off_t)bytes : end != (off_t)bytes)
        return false;
    void *mem = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, begin);
    if (mem == MAP_FAILED)
        return false;
    *d = (struct pod_data){
        .set = layout_view(&offer->layout, mem), .mem = mem, .bytes = bytes, .shared = true};
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

/* Tell the others about this rank, hear about them. *err is this rank's own failure to load, if there is one. */
static int exchange(const struct offer *mine, struct offer *all, struct collectives *comm, int64_t timeout_ms,
                    const struct err *own, struct err *err)
{
    int failed = collectives_all_gather(comm, mine, sizeof(*mine), all, timeout_ms, err);

    if (own->kind)
        *err = *own;
    return failed || own->kind ? -1 : check_offers(all, comm, comm->rank - mine->local_rank, err);
}

/* A rank that does not lead: the leader's copy, else one of its own, of files that may have changed meanwhile. */
static int follow(struct pod_data *d, const struct pod_data_options *o, int rank, const struct offer *leader,
                  struct err *err)
{
    cleanup_close int fd = -1;

    /* The layout is another process's word: it must not make this one read beyond what it maps. */
    if (layout_check(&leader->layout, err))
        return -1;
    if (!leader->layout.steps && borrow(d, leader))
        return 0;
    if (load(d, o, &fd, err))
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
    cleanup_free struct offer *all = calloc((size_t)comm->world, sizeof(*all));
    cleanup_close int fd = -1; /* open until every rank of the pod has looked */
    struct err own = {0};

    *d = (struct pod_data){0};
    if (!all)
        return err_memory(err, "no memory to load the data set");
    if (o->local_rank == 0) {
        mine.loaded = !load(d, o, &fd, &own);
        mine.layout = d->set.layout;
        mine.kept = d->kept != NULL;
        mine.fd = d->kept ? kept_fd(d->kept) : fd;
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
    if (d->mem)
        munmap(d->mem, d->bytes);
    source_free(d->source);
    kept_free(d->kept);
    *d = (struct pod_data){0};
}

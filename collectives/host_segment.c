/* host_segment.c - create, map and grow the memory segment that the ranks of a host share. */
#include "collectives/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAGING_ALIGN = 4096 };

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

size_t host_staging_offset(int world)
{
    return round_up(sizeof(struct host_head) + (size_t)world * sizeof(struct host_slot), STAGING_ALIGN);
}

/* Mappings start at a page boundary. Some Arm kernels have pages of 16 or 64 KiB. */
static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A multiple of the page size, because shared pieces follow. */
static size_t segment_bytes(int world)
{
    return round_up(host_staging_offset(world) + (size_t)world * 2 * HOST_HALF_BYTES, page_bytes());
}

static void *map_own(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int host_segment_alone(struct host *h, struct err *err)
{
    const size_t bytes = segment_bytes(1);
    void *p = map_own(bytes);

    if (p == MAP_FAILED)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot map %zu bytes", bytes);
    h->map = p;
    h->map_bytes = bytes;
    return 0;
}

/* The seal forbids shrinking, which would make the other ranks' accesses raise SIGBUS. Growing stays allowed. */
int host_segment_create(struct host *h, struct err *err)
{
    const size_t bytes = segment_bytes(h->world);

    h->segment = memfd_create("collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (h->segment < 0)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot create shared memory");
    if (ftruncate(h->segment, (off_t)bytes) < 0 || fcntl(h->segment, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot size shared memory to %zu bytes", bytes);
    return host_segment_map(h, err);
}

static int check_file(const struct host *h, size_t need, struct err *err)
{
    struct stat st;
    int seals = fcntl(h->segment, F_GET_SEALS);

    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(h->segment, &st) < 0)
        return err_set(err, ERR_FATAL, "collectives: rank 0 sent a descriptor that is not a shared segment");
    if ((size_t)st.st_size < need)
        return err_set(err, ERR_FATAL, "collectives: the shared segment has %zu bytes, expected %zu",
                       (size_t)st.st_size, need);
    return 0;
}

int host_segment_map(struct host *h, struct err *err)
{
    const size_t bytes = segment_bytes(h->world);

    if (check_file(h, bytes, err) < 0)
        return -1;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->segment, 0);
    if (p == MAP_FAILED)
        return err_errno(err, ERR_FATAL, errno, "collectives: cannot map %zu bytes of shared memory", bytes);
    h->map = p;
    h->map_bytes = h->end_bytes = bytes;
    return 0;
}

static void free_piece(const struct host *h, struct host_piece *piece)
{
    munmap(piece->base, piece->stride * (size_t)h->world);
}

void host_segment_close(struct host *h)
{
    for (int i = 0; i < h->n_pieces; i++)
        free_piece(h, &h->pieces[i]);
    h->n_pieces = 0;
    if (h->map)
        munmap(h->map, h->map_bytes);
    h->map = NULL;
    if (h->segment >= 0)
        close(h->segment);
    h->segment = -1;
}

/* Rank 0 grows the file between two phases, so that all ranks see the new size afterwards. If it fails, all see
 * the old size and fail too. */
static int grow(struct host *h, size_t n, size_t to, int64_t deadline_ms, struct err *err)
{
    const struct host_call call = {.op = HOST_SHARED, .n = n};

    if (host_phase(h, &call, deadline_ms, err) < 0)
        return -1;
    int code = h->rank == 0 && ftruncate(h->segment, (off_t)to) < 0 ? errno : 0;
    if (host_phase(h, NULL, deadline_ms, err) < 0)
        return -1;
    if (code ? err_errno(err, ERR_FATAL, code, "shared: cannot grow shared memory to %zu bytes", to)
             : check_file(h, to, err))
        return host_fail(h, err); /* the others have failed too, or now have one piece more */
    return 0;
}

float *host_segment_piece(struct host *h, size_t n, int64_t deadline_ms, struct err *err)
{
    struct host_piece piece = {.n = n, .stride = round_up(n ? n * sizeof(float) : 1, page_bytes())};
    const size_t bytes = piece.stride * (size_t)h->world, at = h->end_bytes;

    if (h->n_pieces == COLLECTIVES_SHARED_MAX) {
        err_set(err, ERR_INVALID, "shared: more than %d pieces", COLLECTIVES_SHARED_MAX);
        return NULL;
    }
    if (h->segment >= 0 && grow(h, n, at + bytes, deadline_ms, err) < 0)
        return NULL;
    piece.base = h->segment < 0
                     ? map_own(bytes)
                     : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->segment, (off_t)at);
    if (piece.base == MAP_FAILED) {
        err_errno(err, ERR_FATAL, errno, "shared: cannot map %zu bytes", bytes);
        host_fail(h, err); /* the others may have mapped it */
        return NULL;
    }
    h->end_bytes = at + bytes;
    h->pieces[h->n_pieces++] = piece;
    return (float *)(void *)(piece.base + (size_t)h->rank * piece.stride);
}

uint64_t host_segment_find(const struct host *h, const float *x, size_t n, const struct host_piece **piece)
{
    for (int i = 0; i < h->n_pieces; i++) {
        const struct host_piece *p = &h->pieces[i];
        const float *mine = (const float *)(const void *)(p->base + (size_t)h->rank * p->stride);
        if ((uintptr_t)x < (uintptr_t)mine || (uintptr_t)x >= (uintptr_t)(mine + p->n))
            continue;
        size_t at = (size_t)(x - mine);
        if (n > p->n - at)
            return 0;
        *piece = p;
        return (uint64_t)(i + 1) << 48 | at;
    }
    return 0;
}

/* kept.c - find, fill and check the memory file with decoded data. */
#include "trainer/data/kept.h"

#include "common/memory.h"
#include "host/memory_file.h"
#include "host/rank_contract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The start of the file; the key follows. `complete` is written last. */
struct head {
    uint64_t magic;
    uint64_t key_bytes;
    struct data_layout layout;
    uint32_t complete;
    uint32_t pad;
};

static const uint64_t MAGIC = 0x317470656b4b54; /* "TKkept1"; change it when the layout of the data changes */

_Static_assert(sizeof(struct head) <= KEPT_HEAD_BYTES - KEPT_KEY_BYTES, "the key follows the head");

/* Whether the launcher's file can grow: its size is not sealed. */
static bool can_grow(int fd)
{
    return !(fcntl(fd, F_GET_SEALS) & F_SEAL_GROW);
}

struct kept *kept_open(const char *where)
{
    /* Open our own descriptor: its lock ends with this process. */
    cleanup_close int fd = memory_file_open(CONTRACT_KEPT_DATA_NAME, sv_from(where ? where : ""));

    if (fd < 0 || !can_grow(fd) || flock(fd, LOCK_EX | LOCK_NB))
        return NULL;
    struct kept *k = calloc(1, sizeof(*k));
    if (k)
        k->fd = TAKE_FD(fd);
    return k;
}

static void unmap(struct kept *k)
{
    if (k->map)
        munmap(k->map, k->bytes);
    k->map = NULL;
}

void kept_free(struct kept *k)
{
    if (!k)
        return;
    unmap(k);
    if (k->fd >= 0)
        close(k->fd);
    free(k);
}

static off_t size_of(const struct kept *k)
{
    struct stat st;

    return fstat(k->fd, &st) ? -1 : st.st_size;
}

static bool map(struct kept *k, const struct data_layout *l, int prot)
{
    k->bytes = KEPT_HEAD_BYTES + layout_bytes(l);
    if (size_of(k) < (off_t)k->bytes)
        return false;
    void *mem = mmap(NULL, k->bytes, prot, MAP_SHARED, k->fd, 0);
    k->map = mem == MAP_FAILED ? NULL : mem;
    return k->map != NULL;
}

/* Check the labels: a wrong one would cause an access out of bounds. */
static bool labels_are_sound(const struct data_part *p, int32_t classes)
{
    for (int64_t i = 0; p->labels && i < p->items; i++)
        if (p->labels[i] < 0 || p->labels[i] >= classes)
            return false;
    return true;
}

/* Read the head, if it has this key; false: another key, or none. */
static bool read_head(const struct kept *k, const struct buf *key, struct head *h)
{
    cleanup_free char *text = malloc(key->len + 1);

    return text && pread(k->fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) && h->magic == MAGIC &&
           h->complete == 1 && h->key_bytes == key->len && key->len <= KEPT_KEY_BYTES &&
           pread(k->fd, text, key->len, sizeof(*h)) == (ssize_t)key->len &&
           memcmp(text, buf_str(key), key->len) == 0;
}

bool kept_find(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret)
{
    struct data_layout want = *layout;
    struct head h;

    if (!read_head(k, key, &h))
        return false;
    want.classes = h.layout.classes;
    if (!layout_same(&want, &h.layout) || want.classes < 0 || want.classes > LAYOUT_LABEL_MAX + 1 ||
        !map(k, &want, PROT_READ))
        return false;
    *ret = layout_view(&want, k->map + KEPT_HEAD_BYTES);
    if (labels_are_sound(&ret->train, want.classes) && labels_are_sound(&ret->test, want.classes))
        return true;
    unmap(k);
    return false;
}

bool kept_make(struct kept *k, const struct buf *key, const struct data_layout *layout, struct dataset *ret)
{
    const struct head h = {.magic = MAGIC, .key_bytes = key->len, .layout = *layout};
    const off_t had = size_of(k), want = (off_t)(KEPT_HEAD_BYTES + layout_bytes(layout));

    if (had < 0 || key->len > KEPT_KEY_BYTES)
        return false;
    /* Free old data and set all to zero, also the mark `complete`. */
    if ((had && fallocate(k->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, had)) ||
        (had < want && ftruncate(k->fd, want)) || pwrite(k->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
        pwrite(k->fd, buf_str(key), key->len, sizeof(h)) != (ssize_t)key->len ||
        !map(k, layout, PROT_READ | PROT_WRITE))
        return false;
    *ret = layout_view(layout, k->map + KEPT_HEAD_BYTES);
    return true;
}

/* The size is fixed. If memory files are not allowed, use private memory: the other ranks then load their own
 * copy. */
struct kept *kept_own(const struct data_layout *layout, struct dataset *ret, struct err *err)
{
    cleanup_kept struct kept *k = memory_must(calloc(1, sizeof(*k)));

    k->bytes = KEPT_HEAD_BYTES + layout_bytes(layout);
    k->fd = memfd_create("dataset", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const bool forbidden = k->fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
    void *mem = MAP_FAILED;
    if (forbidden || (k->fd >= 0 && !ftruncate(k->fd, (off_t)k->bytes) &&
                      !fcntl(k->fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK)))
        mem = mmap(NULL, k->bytes, PROT_READ | PROT_WRITE,
                   forbidden ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, k->fd, 0);
    if (mem == MAP_FAILED) {
        err_errno(err, ERR_FATAL, errno, "no memory of %zu bytes for the data set", layout_bytes(layout));
        return NULL;
    }
    k->map = mem;
    *ret = layout_view(layout, k->map + KEPT_HEAD_BYTES);
    return TAKE(k);
}

void kept_complete(struct kept *k, int32_t classes)
{
    const uint32_t one = 1;

    mprotect(k->map, k->bytes, PROT_READ);
    if (pwrite(k->fd, &classes, sizeof(classes),
               (off_t)(offsetof(struct head, layout) + offsetof(struct data_layout, classes))) ==
        (ssize_t)sizeof(classes))
        (void)!pwrite(k->fd, &one, sizeof(one), offsetof(struct head, complete));
}

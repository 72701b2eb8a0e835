/* weights.c - map a .safetensors file into memory, and identify files of other formats. */
#include "trainer/state/weights/weights.h"

#include "trainer/data/first_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(struct weights *w, const char *path, struct err *err)
{
    /* O_NONBLOCK: refuse a FIFO instead of waiting for it. */
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%.160s", path);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return err_set(err, ERR_INVALID, "%.160s: expected a file that is not empty", path);
    w->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (w->map == MAP_FAILED) {
        w->map = NULL;
        return err_errno(err, ERR_FATAL, errno, "%.160s: cannot map", path);
    }
    w->bytes = (size_t)st.st_size;
    return 0;
}

static int refuse_pt(const char *path, const void *bytes, size_t len, struct err *err)
{
    if (len < 4 || memcmp(bytes, "PK\3\4", 4) != 0)
        return 0;
    return err_set(
        err, ERR_INVALID,
        "%.160s: a .pt file, which is not read. This makes a .safetensors of it: python3 -c "
        "\"import sys, torch, safetensors.torch as s; s.save_file({k: v.clone().contiguous() for k, v "
        "in torch.load(sys.argv[1], map_location='cpu').items()}, 'model.safetensors')\" FILE.pt",
        path);
}

int weights_refuse_pt(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char first[4];
    const ssize_t n = fd < 0 ? 0 : read(fd, first, sizeof(first));

    return n > 0 ? refuse_pt(path, first, (size_t)n, err) : 0;
}

static int parse(struct weights *w, struct err *err)
{
    char name[FIRST_BYTES_NAME];

    if (!safetensors_parse(w->map, w->bytes, &w->arena, &w->list, err))
        return 0;
    if (first_bytes_name(w->map, w->bytes, name))
        return err_set(err, ERR_INVALID, "%s, expected .safetensors", name);
    return err_wrap(err, "read as .safetensors");
}

int weights_open(struct weights *w, const char *path, struct err *err)
{
    *w = (struct weights){0};
    if (map(w, path, err))
        return -1;
    if (refuse_pt(path, w->map, w->bytes, err)) {
        weights_close(w);
        return -1;
    }
    int rc = parse(w, err);
    if (!rc && w->list.len > WEIGHTS_TENSORS_MAX)
        rc = err_set(err, ERR_INVALID, "%zu tensors, expected at most %d", w->list.len, WEIGHTS_TENSORS_MAX);
    if (!rc)
        return 0;
    weights_close(w);
    return err_wrap(err, "%.120s", path);
}

void weights_close(struct weights *w)
{
    if (w->map)
        munmap(w->map, w->bytes);
    arena_release(&w->arena);
    *w = (struct weights){0};
}

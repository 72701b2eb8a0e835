/* big_files.c - files beyond 4 GiB, really written and really read: by the trainer's own writers and readers.
 *
 *     big_files write pt|safetensors FILE      an export, by its ending
 *     big_files write checkpoint FOLDER        a checkpoint with a .safetensors in it
 *     big_files read safetensors FILE          a .pt is read by check.py alone
 *     big_files read checkpoint FOLDER         FOLDER/step-...: whole, by its manifest
 *
 * The large tensor is mapped and zero but for a few marks, so it costs no memory; check.py looks for the same marks.
 */
#include "trainer/state/files/ckpt_dir.h"
#include "trainer/state/files/safetensors.h"
#include "trainer/state/save.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BIG_FLOATS ((INT64_C(1) << 30) + 16384) /* 4 GiB and 64 KiB */

static const struct mark {
    int64_t place;
    float value;
} MARKS[] = {{0, 1.5f},
             {1, -2},
             {INT64_C(1) << 29, 3.25f},
             {(INT64_C(1) << 30) - 1, 4},
             {INT64_C(1) << 30, 5},
             {BIG_FLOATS - 1, 6.5f}};

static const float FAR[4] = {7, 8, 9, 10}; /* lies behind 4 GiB */

static struct tensor_list list_of(struct tensor_row row[static 2], float *big)
{
    row[0] =
        (struct tensor_row){"big", {.data = big, .dtype = PT_F32, .dims = 2, .dim = {2, BIG_FLOATS / 2}}};
    row[1] = (struct tensor_row){"far", {.data = FAR, .dtype = PT_F32, .dims = 1, .dim = {4}}};
    return (struct tensor_list){row, 2};
}

static int put_safetensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    return safetensors_write(ctx, sink, err);
}

static int write_checkpoint(const char *folder, struct tensor_list *list, struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
    const struct manifest m = {.step = 1, .run_id = "big"};

    return ckpt_begin(&w, folder, &m, NULL, err) ||
                   ckpt_file(&w, "model.safetensors", put_safetensors, list, err) || ckpt_commit(&w, 3, err)
               ? -1
               : 0;
}

static int write_kind(const char *kind, const char *path, struct err *err)
{
    const size_t bytes = (size_t)BIG_FLOATS * sizeof(float);
    float *big =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct tensor_row row[2];

    if (big == MAP_FAILED)
        return err_set(err, ERR_FATAL, "no room to map %zu bytes", bytes);
    for (size_t i = 0; i < ARRAY_LEN(MARKS); i++)
        big[MARKS[i].place] = MARKS[i].value;
    struct tensor_list list = list_of(row, big);
    int rc =
        strcmp(kind, "checkpoint") == 0 ? write_checkpoint(path, &list, err) : save_tensors(path, &list, err);
    munmap(big, bytes);
    return rc;
}

/* The marks and nothing but zeros around each of them. */
static int check_tensors(const struct pt_tensor *big, const struct pt_tensor *far, struct err *err)
{
    const char *p = big->data;

    if (pt_tensor_bytes(big) != BIG_FLOATS * (int64_t)sizeof(float) ||
        pt_tensor_bytes(far) != (int64_t)sizeof(FAR))
        return err_set(err, ERR_INVALID, "big or far is of another size");
    for (int64_t i = 0; i < BIG_FLOATS; i += (i + 2 < BIG_FLOATS && i % 4096 == 1) ? 4095 : 1) {
        float want = 0, got;
        for (size_t k = 0; k < ARRAY_LEN(MARKS); k++)
            if (MARKS[k].place == i)
                want = MARKS[k].value;
        memcpy(&got, p + i * (int64_t)sizeof(got), sizeof(got));
        if (got != want)
            return err_set(err, ERR_INVALID, "big[%" PRId64 "] is %g, expected %g", i, (double)got,
                           (double)want);
    }
    if (memcmp(far->data, FAR, sizeof(FAR)) != 0)
        return err_set(err, ERR_INVALID, "far is not what was written");
    return 0;
}

static int check_file(const void *bytes, size_t len, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct tensor_list list;

    if (safetensors_parse(bytes, len, &a, &list, err))
        return -1;
    if (list.len != 2)
        return err_set(err, ERR_INVALID, "%zu tensors, expected 2", list.len);
    int big = strcmp(list.row[1].name, "big") == 0;
    return check_tensors(&list.row[big].tensor, &list.row[!big].tensor, err);
}

static int read_file(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_set(err, ERR_NOT_FOUND, "%s: cannot be opened", path);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_set(err, ERR_FATAL, "%s: cannot be mapped", path);
    int rc = check_file(bytes, (size_t)st.st_size, err);
    munmap(bytes, (size_t)st.st_size);
    return rc;
}

/* As a resuming trainer does: whole files in memory, against the manifest's sizes and sums. */
static int read_checkpoint(const char *folder, struct err *err)
{
    cleanup_buf struct buf file = BUF_INIT((size_t)5 << 30);
    struct manifest m;

    return ckpt_manifest(folder, &m, err) || ckpt_read(folder, &m, "model.safetensors", &file, err) ||
                   check_file(file.data, file.len, err)
               ? -1
               : 0;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    int rc;

    if (argc != 4 || (strcmp(argv[1], "write") != 0 && strcmp(argv[1], "read") != 0) ||
        (strcmp(argv[2], "pt") != 0 && strcmp(argv[2], "safetensors") != 0 &&
         strcmp(argv[2], "checkpoint") != 0) ||
        (argv[1][0] == 'r' && strcmp(argv[2], "pt") == 0)) {
        fputs("usage: big_files write|read pt|safetensors|checkpoint PATH (no pt is read)\n", stderr);
        return 2;
    }
    if (argv[1][0] == 'w')
        rc = write_kind(argv[2], argv[3], &err);
    else
        rc = strcmp(argv[2], "checkpoint") == 0 ? read_checkpoint(argv[3], &err) : read_file(argv[3], &err);
    if (rc)
        fprintf(stderr, "big_files: %s\n", err.msg);
    return rc != 0;
}

/* fuzz_idx.c - a file whose header the reader accepts has the expected kind, and gives as many bytes as the header says or none.
 * Byte 0: the expected kind; the others are the file, compressed or not. */
#include "fuzz_file.h"

#include "trainer/data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 16 };
    static uint8_t bytes[MOST];
    struct idx_shape shape;
    struct err err = {0};

    if (!size)
        return 0;
    enum idx_kind kind = data[0] % 2 ? IDX_LABELS : IDX_IMAGES;
    cleanup_fuzz_file struct fuzz_file f = fuzz_file_make(data + 1, size - 1);
    if (idx_probe(f.path, kind, &shape, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    MUST(shape.items >= 0 && shape.rows >= 1 && shape.cols >= 1);
    MUST(shape.rows <= IDX_SIDE_MAX && shape.cols <= IDX_SIDE_MAX && idx_bytes(&shape) <= IDX_BYTES_MAX);
    MUST(kind == IDX_IMAGES || (shape.rows == 1 && shape.cols == 1));
    if (idx_bytes(&shape) <= MOST && idx_load(f.path, kind, &shape, bytes, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    return 0;
}

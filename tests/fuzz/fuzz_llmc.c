/* fuzz_llmc.c - a file of weights that is accepted has all of its tensors' bytes, and comes back from what we write. */
#include "fuzz.h"

#include "common/buf.h"
#include "trainer/state/weights/llmc.h"

#include <string.h>

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf again = BUF_INIT(1 << 22);
    const struct pt_sink sink = {to_buf, &again};
    struct llmc_header h, back;
    struct tensor_list list;
    struct err err = {0};

    if (llmc_parse(data, size, &a, &h, &list, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < list.len; i++) {
        const uint8_t *p = list.row[i].tensor.data;
        int64_t n = pt_tensor_bytes(&list.row[i].tensor);
        MUST(n > 0 && p >= data && (size_t)n <= size - (size_t)(p - data));
    }
    MUST(!llmc_write(&h, &list, &sink, &err));
    MUST(!llmc_parse(again.data, again.len, &a, &back, &list, &err));
    MUST(back.vocab == h.vocab && back.layers == h.layers && back.width == h.width);
    return 0;
}

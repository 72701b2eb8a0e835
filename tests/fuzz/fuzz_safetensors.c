/* fuzz_safetensors.c - what is accepted covers its data exactly, and comes back from what we write of it. */
#include "fuzz.h"

#include "common/buf.h"
#include "trainer/state/files/safetensors.h"

#include <string.h>

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf again = BUF_INIT(1 << 22);
    struct tensor_list list;
    struct tensor_list back;
    struct err err = {0};
    size_t bytes = 0;

    if (safetensors_parse(data, size, &a, &list, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < list.len; i++) {
        const uint8_t *p = list.row[i].tensor.data;
        int64_t n = pt_tensor_bytes(&list.row[i].tensor);
        MUST(n >= 0 && p >= data && (size_t)n <= size - (size_t)(p - data));
        bytes += (size_t)n;
    }
    MUST(bytes < size);
    /* Two tensors of one name can be read, and are not written. */
    if (safetensors_write(&list, &(struct pt_sink){to_buf, &again}, &err))
        return 0;
    MUST(safetensors_parse(again.data, again.len, &a, &back, &err) == 0 && back.len == list.len);
    return 0;
}

/* fuzz_torch.c - the first byte says whether a whole .pt archive or its pickle alone follows: what is accepted stays
 * within the input, and can be written again. */
#include "fuzz.h"

#include "common/buf.h"
#include "trainer/state/files/torch_unzip.h"
#include "trainer/state/files/torch_zip.h"
#include "trainer/state/files/unpickle.h"

#include <string.h>

struct input {
    const uint8_t *p;
    size_t len;
};

/* Every key names the whole input. */
static int storage(void *ctx, const char *key, const void **ret, size_t *ret_bytes, struct err *err)
{
    const struct input *in = ctx;

    if (!key[0])
        return err_set(err, ERR_INVALID, "no key");
    *ret = in->p;
    *ret_bytes = in->len;
    return 0;
}

static void walk(const struct pt_value *v, const struct input *in)
{
    switch (v->type) {
    case PT_TENSOR: {
        int64_t n = pt_tensor_bytes(&v->tensor);
        const uint8_t *p = v->tensor.data;
        MUST(n >= 0 && (n == 0 || (p >= in->p && (size_t)n <= in->len - (size_t)(p - in->p))));
        break;
    }
    case PT_LIST:
    case PT_TUPLE:
        for (size_t i = 0; i < v->seq.len; i++)
            walk(&v->seq.values[i], in);
        break;
    case PT_DICT:
    case PT_ORDERED_DICT:
        for (size_t i = 0; i < v->dict.len; i++)
            walk(&v->dict.items[i].value, in);
        break;
    case PT_STR:
        MUST(strlen(v->s) <= in->len);
        break;
    case PT_NONE:
    case PT_BOOL:
    case PT_INT:
    case PT_FLOAT:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct input in = {data + (size > 0), size - (size > 0)};
    struct unpickle_source source = {storage, &in};
    struct pt_value v;
    struct err err = {0};
    bool pickle = size && data[0] == 'P';
    int rc =
        pickle ? unpickle(in.p, in.len, &source, &a, &v, &err) : torch_zip_read(in.p, in.len, &a, &v, &err);

    MUST(rc == 0 || (err.kind == ERR_INVALID && err.msg[0]));
    if (rc == 0)
        walk(&v, &in);
    return 0;
}

#include "beside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAN_BYTE = 0xff, SHIFT_BYTES = 4 };

void beside_open(struct beside *s, enum precision precision, enum element element)
{
    struct err err = {0};

    *s = (struct beside){.nmse = 1e-11, .seed = 1};
    s->cpu = kctx_make(&(struct kctx_options){.threads = 1}, &err);
    s->device = device_open(precision, element, &err);
    if (!s->cpu || !s->device)
        fail_msg("%s", err.msg);
}

void beside_close(struct beside *s)
{
    kctx_free(s->cpu);
    kctx_free(s->device);
}

static int add(struct beside *s, enum beside_kind kind, enum beside_type type, size_t bytes)
{
    struct beside_buffer *b = &s->b[s->n];
    struct err err = {0};

    assert_true(s->n < BESIDE_MAX);
    *b = (struct beside_buffer){.kind = kind, .type = type, .bytes = bytes};
    b->start = malloc(bytes);
    b->host = malloc(bytes);
    b->block = device_alloc(s->device, bytes + SHIFT_BYTES, &err);
    assert_true(b->start && b->host && b->block);
    memset(b->start, NAN_BYTE, bytes);
    b->device = (char *)b->block + SHIFT_BYTES * (s->n % 2);
    return s->n++;
}

int beside_floats(struct beside *s, enum beside_kind kind, size_t n)
{
    int at = add(s, kind, BESIDE_F32, n * sizeof(float));
    float *x = s->b[at].start;

    for (size_t i = 0; i < n; i++) {
        s->seed = s->seed * 1664525U + 1013904223U;
        x[i] = (float)(s->seed >> 8) / 8388608.0F - 1;
    }
    return at;
}

int beside_copy(struct beside *s, enum beside_kind kind, enum beside_type type, const void *from,
                size_t bytes)
{
    int at = add(s, kind, type, bytes);

    memcpy(s->b[at].start, from, bytes);
    return at;
}

int beside_out(struct beside *s, enum beside_type type, size_t bytes)
{
    return add(s, BESIDE_OUT, type, bytes);
}

static void run_cpu(struct beside *s, beside_fn *fn, struct beside_run *r)
{
    r->ctx = s->cpu;
    for (int i = 0; i < s->n; i++) {
        memcpy(s->b[i].host, s->b[i].start, s->b[i].bytes);
        r->p[i] = s->b[i].host;
    }
    fn(r);
}

/* got[i]: what buffer i holds afterwards, on the heap. */
static void run_device(struct beside *s, beside_fn *fn, struct beside_run *r, void *got[static BESIDE_MAX])
{
    struct err err = {0};

    r->ctx = s->device;
    for (int i = 0; i < s->n; i++) {
        device_put(s->device, s->b[i].device, s->b[i].start, s->b[i].bytes);
        r->p[i] = s->b[i].device;
    }
    fn(r);
    for (int i = 0; i < s->n; i++) {
        got[i] = malloc(s->b[i].bytes);
        assert_non_null(got[i]);
        if (device_get(s->device, got[i], s->b[i].device, s->b[i].bytes, &err))
            fail_msg("%s", err.msg);
    }
}

static double nmse(const float *got, const float *want, size_t n)
{
    double wrong = 0;
    double all = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i]))
            continue;
        wrong += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        all += (double)want[i] * (double)want[i];
    }
    return wrong == 0 ? 0 : wrong / all;
}

static void compare(const struct beside *s, void *const *got, const char *what)
{
    for (int i = 0; i < s->n; i++) {
        const struct beside_buffer *b = &s->b[i];
        if (b->kind == BESIDE_IN || b->type == BESIDE_BITS) {
            const void *want = b->kind == BESIDE_IN ? b->start : b->host;
            if (memcmp(got[i], want, b->bytes) != 0)
                fail_msg("%s: buffer %d has other bits than the CPU's", what, i);
            continue;
        }
        double far = nmse(got[i], b->host, b->bytes / sizeof(float));
        if (!(far <= s->nmse))
            fail_msg("%s: buffer %d is %.3g from the CPU's, expected at most %.3g", what, i, far, s->nmse);
    }
}

void beside_check(struct beside *s, beside_fn *fn, const void *shape, const char *what)
{
    struct beside_run r = {.shape = shape};
    void *got[BESIDE_MAX], *again[BESIDE_MAX];

    run_cpu(s, fn, &r);
    run_device(s, fn, &r, got);
    compare(s, got, what);
    device_disturb(true);
    run_device(s, fn, &r, again);
    device_disturb(false);
    for (int i = 0; i < s->n; i++) {
        if (memcmp(got[i], again[i], s->b[i].bytes) != 0)
            fail_msg("%s: buffer %d has other bits the second time", what, i);
        free(got[i]);
        free(again[i]);
        free(s->b[i].start);
        free(s->b[i].host);
        device_free(s->device, s->b[i].block);
    }
    s->n = 0;
}

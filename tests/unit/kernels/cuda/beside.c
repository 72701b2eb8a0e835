#include "beside.h"
#include "bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAN_BYTE = 0xff };

int beside_none(void)
{
    struct err err = {0};
    struct kctx *device = device_open(PRECISION_F32, ELEMENT_F32, &err);

    if (!device) {
        bool required = getenv("TK_GPU_REQUIRED");
        fprintf(stderr, "%s: %s\n", required ? "no GPU to test on" : "skipped", err.msg);
        return required ? 1 : 77;
    }
    printf("on %s\n", device_name(device));
    kctx_free(device);
    return 0;
}

void beside_open(struct beside *s, enum precision precision, enum element element)
{
    struct err err = {0};

    *s = (struct beside){.nmse = 1e-11, .seed = 1};
    s->cpu = kctx_make(&(struct kctx_options){.threads = 1}, &err);
    s->device = device_open(precision, element, &err);
    if (!s->cpu || !s->device)
        fail_msg("%s", err.msg);
}

void beside_reserve(struct beside *s, size_t cpu_bytes, size_t device_bytes)
{
    struct err err = {0};

    assert_int_equal(kctx_reserve(s->cpu, cpu_bytes, &err), 0);
    assert_int_equal(kctx_reserve(s->device, device_bytes, &err), 0);
}

void beside_close(struct beside *s)
{
    kctx_free(s->cpu);
    kctx_free(s->device);
}

static bool is_bf16(const struct beside *s, enum beside_type type)
{
    return type == BESIDE_ELEMENTS && device_element(s->device) == ELEMENT_BF16;
}

static size_t size_of(const struct beside *s, enum beside_type type)
{
    return type == BESIDE_ELEMENTS ? element_bytes(device_element(s->device)) : sizeof(float);
}

static int add(struct beside *s, enum beside_kind kind, enum beside_type type, size_t bytes)
{
    struct beside_buffer *b = &s->b[s->n];
    struct err err = {0};

    assert_true(s->n < BESIDE_MAX);
    *b = (struct beside_buffer){.kind = kind, .type = type, .bytes = bytes, .device_bytes = bytes};
    if (is_bf16(s, type))
        b->device_bytes = bytes / 2;
    b->start = malloc(bytes);
    b->host = malloc(bytes);
    b->block = device_alloc(s->device, b->device_bytes + size_of(s, type), &err);
    assert_true(b->start && b->host && b->block);
    memset(b->start, NAN_BYTE, bytes);
    b->device = (char *)b->block + (s->aligned ? 0 : size_of(s, type) * (size_t)(s->n % 2));
    return s->n++;
}

/* Numbers that the device has, too. */
static void round_start(const struct beside *s, struct beside_buffer *b)
{
    const size_t n = b->bytes / sizeof(float);
    cleanup_free uint16_t *half = malloc(n * sizeof(*half));

    if (!is_bf16(s, b->type))
        return;
    assert_non_null(half);
    bf16_from_f32(b->start, n, half);
    bf16_to_f32(half, n, b->start);
}

static int add_floats(struct beside *s, enum beside_kind kind, enum beside_type type, size_t n)
{
    int at = add(s, kind, type, n * sizeof(float));
    float *x = s->b[at].start;

    for (size_t i = 0; i < n; i++) {
        s->seed = s->seed * 1664525U + 1013904223U;
        x[i] = (float)(s->seed >> 8) / 8388608.0F - 1;
    }
    round_start(s, &s->b[at]);
    return at;
}

int beside_floats(struct beside *s, enum beside_kind kind, size_t n)
{
    return add_floats(s, kind, BESIDE_F32, n);
}

int beside_elements(struct beside *s, enum beside_kind kind, size_t n)
{
    return add_floats(s, kind, BESIDE_ELEMENTS, n);
}

int beside_copy(struct beside *s, enum beside_kind kind, enum beside_type type, const void *from,
                size_t bytes)
{
    int at = add(s, kind, type, bytes);

    memcpy(s->b[at].start, from, bytes);
    round_start(s, &s->b[at]);
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

static void put(struct beside *s, const struct beside_buffer *b)
{
    cleanup_free void *half = malloc(b->bytes);

    assert_non_null(half);
    if (b->device_bytes < b->bytes)
        bf16_from_f32(b->start, b->bytes / sizeof(float), half);
    device_put(s->device, b->device, b->device_bytes < b->bytes ? half : b->start, b->device_bytes);
}

/* On the heap, in f32 if it is numbers. */
static void *get(struct beside *s, const struct beside_buffer *b)
{
    struct err err = {0};
    void *got = malloc(b->device_bytes);

    assert_non_null(got);
    if (device_get(s->device, got, b->device, b->device_bytes, &err))
        fail_msg("%s", err.msg);
    if (b->device_bytes == b->bytes)
        return got;
    float *wide = malloc(b->bytes);
    assert_non_null(wide);
    bf16_to_f32(got, b->bytes / sizeof(float), wide);
    free(got);
    return wide;
}

/* got[i]: what buffer i holds afterwards, on the heap. */
static void run_device(struct beside *s, beside_fn *fn, struct beside_run *r, void *got[static BESIDE_MAX])
{
    r->ctx = s->device;
    for (int i = 0; i < s->n; i++) {
        put(s, &s->b[i]);
        r->p[i] = s->b[i].device;
    }
    fn(r);
    for (int i = 0; i < s->n; i++) {
        got[i] = get(s, &s->b[i]);
        assert_non_null(got[i]);
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

/* What was rounded to bf16 once is within 2^-8 of itself, and of what f32 leaves of a sum of numbers like these. */
static void compare_rounded(const float *got, const float *want, size_t n, int buffer, const char *what)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 0x1p-8 * fabs((double)want[i]) + 2e-6 * largest) &&
            !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s: element %zu of buffer %d is %.9g, the CPU has %.9g", what, i, buffer,
                     (double)got[i], (double)want[i]);
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
        if (b->device_bytes < b->bytes && !s->rounds_inside) {
            compare_rounded(got[i], b->host, b->bytes / sizeof(float), i, what);
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

struct queued_loss beside_loss(struct kctx *device, struct queued_loss *at)
{
    struct err err = {0};
    struct queued_loss got;

    if (device_get(device, &got, at, sizeof(got), &err))
        fail_msg("%s", err.msg);
    device_free(device, at);
    return got;
}

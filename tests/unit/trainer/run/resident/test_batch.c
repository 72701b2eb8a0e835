/* test_batch.c - how many sequences go through a device at a time, chosen by its memory (session_batch.c): what is chosen fits, what
 * would be more does not, and all ranks take the same. On an emulated GPU, and on the CPU.
 */
#include "test.h"

#include "a_gpt2.h"
#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "trainer/run/session.h"

#include <stdlib.h>
#include <string.h>

static const size_t ALL = (size_t)1 << 40;

/* all_gather's result, but for this rank's own. */
static int64_t others;

static int gather(struct collectives *c, const void *mine, size_t len, void *all, int64_t timeout_ms,
                  struct err *err)
{
    (void)timeout_ms;
    (void)err;
    assert_int_equal(len, sizeof(others));
    for (int r = 1; r < c->world; r++)
        memcpy((char *)all + (size_t)r * len, &others, len);
    memcpy(all, mine, len);
    return 0;
}

struct asked {
    int world;
    int64_t sequences; /* of a rank and step */
    bool device, recompute;
};

static void model_of(const struct asked *a, struct model_spec *ret)
{
    const struct gpt2_spec gpt2 = {.vocab = VOCAB,
                                   .block_size = TIME,
                                   .n_layer = 2,
                                   .n_head = 2,
                                   .n_embd = 16,
                                   .recompute = a->recompute};

    ret->gpt2 = gpt2;
    gpt2_layers(ret);
    ret->numbers.on_device = a->device;
}

/* The size of a micro-batch of a rank that shares so many tokens; 0: *err reports why none. */
static int64_t chosen(const struct asked *a, int64_t tokens, struct err *err)
{
    struct collectives comm = {.world = a->world, .all_gather = gather};
    struct session s = {.comm = &comm, .gpu.sharers = 1};

    s.effective.total_batch_tokens = tokens;
    s.effective.micro_batches = 1;
    model_of(a, &s.effective.model);
    s.ctx =
        a->device ? cuda_make(0, PRECISION_F32, ELEMENT_F32, err) : kctx_make(&(struct kctx_options){0}, err);
    assert_non_null(s.ctx);
    const int64_t rows =
        session_share_batch(&s, err) ? 0 : s.effective.batch_size / s.effective.micro_batches;
    assert_true(!rows || s.effective.batch_size == a->sequences);
    kctx_free(s.ctx);
    return rows;
}

static int64_t must_choose(const struct asked *a)
{
    struct err err = {0};
    const int64_t rows = chosen(a, a->sequences * TIME * a->world, &err);

    if (!rows)
        fail_msg("%s", err.msg);
    return rows;
}

static size_t taken_by_a_context(void)
{
    struct err err = {0};
    struct kctx *ctx = cuda_make(0, PRECISION_F32, ELEMENT_F32, &err);
    const size_t bytes = fake_cudart_bytes();

    kctx_free(ctx);
    return bytes;
}

/* What a training takes of device memory, beside a context's own. */
static size_t taken_by(const struct task *task)
{
    const size_t context = taken_by_a_context();
    struct training t;

    open_training(&t, task, true);
    const size_t bytes = fake_cudart_bytes() - context;
    close_training(&t);
    return bytes;
}

static void needs_are_what_is_taken(void **state)
{
    (void)state;
    for (int rows = 1; rows <= 8; rows++)
        for (int recompute = 0; recompute < 2; recompute++) {
            const struct asked a = {.device = true, .recompute = recompute};
            const struct task task = {
                .batch = 2 * rows, .micro = 2, .items = 20, .clip = 1, .recompute = recompute};
            struct model_spec spec;
            struct err err = {0};
            size_t needs;
            model_of(&a, &spec);
            if (resident_needs(&spec, rows, &needs, &err))
                fail_msg("%s", err.msg);
            const size_t taken = taken_by(&task);
            if (needs > taken || taken - needs > 2000) /* orders, norms, spans: of no size that grows */
                fail_msg("%d sequences: %zu bytes, expected %zu", rows, needs, taken);
        }
}

/* By hand: the most that divides and fits. */
static int64_t by_hand(const struct asked *a, size_t room)
{
    for (int64_t rows = a->sequences; rows > 1; rows--) {
        struct model_spec spec;
        struct err err = {0};
        size_t needs;
        if (a->sequences % rows)
            continue;
        model_of(a, &spec);
        assert_int_equal(resident_needs(&spec, (int)rows, &needs, &err), 0);
        if (needs <= room / 100 * 90)
            return rows;
    }
    return 1;
}

static void memory_decides(void **state)
{
    static const int64_t sequences[] = {1, 7, 12, 64};
    const size_t context = taken_by_a_context();
    bool seen[65] = {false};

    (void)state;
    for (size_t bytes = 400000; bytes < 20000000; bytes += bytes / 6)
        for (int i = 0; i < (int)ARRAY_LEN(sequences) * 2; i++) {
            const struct asked a = {.world = 1 + i % 2 * 3, .device = true, .sequences = sequences[i / 2]};
            fake_cudart_memory(context + bytes);
            others = 64;
            const int64_t rows = must_choose(&a);
            fake_cudart_memory(ALL);
            assert_int_equal(rows, by_hand(&a, bytes));
            seen[rows] = true;
        }
    assert_true(seen[1] && seen[2] && seen[6] && seen[12] && seen[16] && seen[64]);
}

static void all_ranks_take_what_the_smallest_can(void **state)
{
    (void)state;
    for (others = 1; others <= 16; others *= 2)
        assert_int_equal(must_choose(&(struct asked){.world = 3, .device = true, .sequences = 16}), others);
}

static void a_cpu_takes_four_at_most(void **state)
{
    (void)state;
    others = 64;
    assert_int_equal(must_choose(&(struct asked){.world = 1, .sequences = 512}), 4);
    assert_int_equal(must_choose(&(struct asked){.world = 2, .sequences = 6}), 3);
    assert_int_equal(must_choose(&(struct asked){.world = 2, .sequences = 7}), 1);
}

static void what_does_not_divide_is_told(void **state)
{
    struct err err = {0};

    (void)state;
    others = 1;
    assert_int_equal(chosen(&(struct asked){.world = 2}, 5 * TIME, &err), 0);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "--total_batch_tokens 60: expected 1..1024 times 24"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_are_what_is_taken),
        cmocka_unit_test(memory_decides),
        cmocka_unit_test(all_ranks_take_what_the_smallest_can),
        cmocka_unit_test(a_cpu_takes_four_at_most),
        cmocka_unit_test(what_does_not_divide_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

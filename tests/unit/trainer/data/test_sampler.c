/* test_sampler.c - DistributedSampler's items, its arithmetic, evaluation's shards, and the sizes of a split, whose items are
 * compared with PyTorch's beside the weights. */
#include "../../../golden/torch/golden.h"
#include "common/cleanup.h"
#include "test.h"
#include "trainer/data/sampler.h"
#include "trainer/data/split.h"

#include <string.h>
#include <zlib.h>

static struct sampler sampler_of(int64_t items, int32_t rank, int32_t world, bool shuffle)
{
    return (struct sampler){.items = items, .rank = rank, .world = world, .seed = 3, .shuffle = shuffle};
}

static void check_golden(const struct golden_sampler *want)
{
    cleanup_free uint32_t *order = malloc((size_t)want->items * sizeof(*order));
    uLong crc = crc32(0, NULL, 0);

    assert_non_null(order);
    for (int rank = 0; rank < want->world; rank++) {
        struct sampler s = sampler_of(want->items, rank, want->world, want->shuffle);
        assert_int_equal(sampler_len(&s), want->len);
        sampler_epoch(&s, want->epoch, order);
        for (int64_t i = 0; i < sampler_len(&s); i++) {
            uint32_t item = sampler_at(&s, order, i);
            crc = crc32(crc, (const Bytef *)&item, sizeof(item));
        }
    }
    assert_int_equal(crc, want->crc);
}

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden_samplers); i++)
        check_golden(&golden_samplers[i]);
}

static void test_batches(void **state)
{
    struct sampler s = sampler_of(10, 1, 3, false); /* 1 4 7 and the padding's 0 */
    uint32_t order[10];
    uint32_t got[3];

    (void)state;
    sampler_epoch(&s, 0, order);
    assert_int_equal(sampler_len(&s), 4);
    assert_int_equal(sampler_steps(&s, 3), 2);
    assert_int_equal(sampler_steps(&s, 4), 1);
    assert_int_equal(sampler_steps(&s, 1000), 1);
    assert_int_equal(sampler_batch(&s, order, 0, 3, got), 3);
    assert_memory_equal(got, ((uint32_t[]){1, 4, 7}), sizeof(got));
    assert_int_equal(sampler_batch(&s, order, 1, 3, got), 1);
    assert_int_equal(got[0], 0);
}

static void test_shards(void **state)
{
    (void)state;
    for (int64_t items = 0; items <= 25; items++) {
        for (int32_t world = 1; world <= 8; world++) {
            int64_t next = 0;
            for (int32_t rank = 0; rank < world; rank++) {
                struct shard s = sampler_shard(items, rank, world);
                assert_int_equal(s.first, next);
                assert_in_range(s.count, items / world, items / world + 1);
                next += s.count;
            }
            assert_int_equal(next, items);
        }
    }
}

/* The same ranks continue where they were; others share out what is left, and every item is taken. */
static void test_going_on(void **state)
{
    enum { ITEMS = 53, BATCH = 3 };
    uint32_t order[ITEMS];
    uint32_t whole[BATCH], rest[BATCH];

    (void)state;
    for (int32_t from = 1; from <= 4; from++) {
        struct sampler a = sampler_of(ITEMS, 0, from, true);
        int64_t steps = sampler_steps(&a, BATCH);
        sampler_epoch(&a, 2, order);
        for (int64_t taken = 0; taken <= steps; taken++) {
            int64_t places = taken * BATCH < sampler_len(&a) ? taken * BATCH : sampler_len(&a);
            for (int32_t to = 1; to <= 4; to++) {
                int seen[ITEMS] = {0};
                for (int64_t i = 0; i < places * from && i < ITEMS; i++)
                    seen[order[i]]++;
                for (int32_t rank = 0; rank < to; rank++) {
                    struct sampler b = sampler_of(ITEMS, rank, to, true);
                    b.first = places * from;
                    for (int64_t i = 0; i < sampler_len(&b); i++)
                        seen[sampler_at(&b, order, i)]++;
                    for (int64_t step = taken; from == to && step < steps; step++) {
                        struct sampler c = sampler_of(ITEMS, rank, to, true);
                        int64_t n = sampler_batch(&c, order, step, BATCH, whole);
                        assert_int_equal(sampler_batch(&b, order, step - taken, BATCH, rest), n);
                        assert_memory_equal(rest, whole, (size_t)n * sizeof(*rest));
                    }
                }
                for (int i = 0; i < ITEMS; i++)
                    assert_true(seen[i] >= 1 && seen[i] <= 2); /* twice: padding */
            }
        }
    }
}

/* What torch.utils.data.random_split makes of [1 - f, f]. */
static void fractions_are_random_splits(void **state)
{
    (void)state;
    static const struct {
        struct split_spec spec;
        int64_t items, train, val; /* 0, 0: refused */
    } cases[] = {
        {{.val_fraction = 0.2}, 10, 8, 2},
        {{.val_fraction = 0.2}, 11, 9, 2},
        {{.val_fraction = 0.3}, 10, 7, 3},
        {{.val_fraction = 0.5}, 7, 4, 3},
        {{.val_fraction = 0.1}, 60000, 54000, 6000},
        {{0}, 5, 5, 0},
        {{.val_items = 2}, 5, 3, 2},
        {{.train_items = 3, .val_items = 2}, 5, 3, 2},
        {{.train_items = 4, .val_items = 2}, 5, 0, 0},
        {{.train_items = 4}, 5, 0, 0},
        {{.val_items = 5}, 5, 0, 0},
        {{.val_items = 6}, 5, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t train = 0, val = 0;
        struct err err;
        int rc = split_sizes(&cases[i].spec, cases[i].items, &train, &val, &err);
        assert_int_equal(rc, cases[i].train ? 0 : -1);
        assert_true(train == cases[i].train && val == cases[i].val);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(fractions_are_random_splits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

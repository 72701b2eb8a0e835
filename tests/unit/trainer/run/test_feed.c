/* test_feed.c - grey levels as torchvision makes them, and which samples a batch holds. */
#include "test.h"

#include "trainer/data/tokens.h"
#include "trainer/run/feed.h"

#include <stdlib.h>
#include <string.h>

/* ToTensor then Normalize((0.5,), (0.5,)) in PyTorch, bit for bit: levels and what they become. */
static void levels_are_torchvisions(void **state)
{
    (void)state;
    static const struct {
        int level;
        float value;
    } want[] = {
        {0, -0x1p+0f},         {1, -0x1.fbfbfcp-1f},  {2, -0x1.f7f7f8p-1f},
        {85, -0x1.555554p-2f}, {127, -0x1.0101p-8f},  {128, 0x1.0102p-8f},
        {200, 0x1.232324p-1f}, {254, 0x1.fbfbfcp-1f}, {255, 0x1p+0f},
    };
    const struct data_spec spec = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    const struct dataset set = {.layout = {.train_items = 1, .rows = 1, .cols = 1, .channels = 1}};
    struct feed f;

    feed_init(&f, &set, false, NULL, &spec);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        if (f.byte[want[i].level] != want[i].value)
            fail_msg("level %d: %a, expected %a", want[i].level, (double)f.byte[want[i].level],
                     (double)want[i].value);
}

static void batches_follow_the_subset(void **state)
{
    (void)state;
    uint8_t images[] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t labels[] = {9, 8, 7, 6};
    const uint32_t subset[] = {3, 1};
    const uint32_t positions[] = {1, 0, 1};
    const struct data_spec spec = {.stats = 1, .std = {1}};
    struct dataset set = {.layout = {.train_items = 4, .rows = 1, .cols = 2, .channels = 1},
                          .train = {.items = 4, .x = images, .labels = labels}};
    float x[6];
    int32_t y[3];
    struct err err;
    struct feed f;

    feed_init(&f, &set, false, subset, &spec);
    assert_int_equal(feed_batch(&f, positions, 3, x, &(struct feed_targets){.labels = y}, &err), 0);
    const float want[] = {2 / 255.0f, 3 / 255.0f, 6 / 255.0f, 7 / 255.0f, 2 / 255.0f, 3 / 255.0f};
    assert_memory_equal(x, want, sizeof(want));
    assert_true(y[0] == 8 && y[1] == 6 && y[2] == 8);
    set.test = set.train;
    feed_init(&f, &set, true, NULL, &spec);
    assert_int_equal(feed_batch(&f, positions, 2, x, &(struct feed_targets){.labels = y}, &err), 0);
    assert_true(y[0] == 8 && y[1] == 9);
}

/* Samples are requested before they are decoded: at any length of a batch the same come out, and no position behind the
 * last is read (the sanitizer looks). */
static void batches_of_any_length_hold_their_samples(void **state)
{
    (void)state;
    enum { ITEMS = 23, LEN = 3 };
    const struct data_spec spec = {.stats = 1, .std = {1}};
    uint8_t images[ITEMS * LEN];
    int32_t labels[ITEMS];
    struct dataset set = {.layout = {.train_items = ITEMS, .rows = 1, .cols = LEN, .channels = 1},
                          .train = {.items = ITEMS, .x = images, .labels = labels}};
    struct err err;
    struct feed f;

    for (int i = 0; i < ITEMS * LEN; i++) {
        images[i] = (uint8_t)(255 - i);
        labels[i / LEN] = i / LEN;
    }
    feed_init(&f, &set, false, NULL, &spec);
    for (size_t n = 1; n <= ITEMS; n++) {
        cleanup_free uint32_t *positions = malloc(n * sizeof(*positions));
        cleanup_free float *x = malloc(n * LEN * sizeof(*x));
        cleanup_free int32_t *y = malloc(n * sizeof(*y));
        assert_true(positions && x && y);
        for (size_t i = 0; i < n; i++)
            positions[i] = (uint32_t)(i * 7 % ITEMS);
        assert_int_equal(feed_batch(&f, positions, (int64_t)n, x, &(struct feed_targets){.labels = y}, &err),
                         0);
        for (size_t i = 0; i < n * LEN; i++) {
            assert_true(x[i] == (float)images[positions[i / LEN] * LEN + i % LEN] / 255.0f);
            assert_int_equal(y[i / LEN], (int32_t)positions[i / LEN]);
        }
    }
}

/* A mean and std for each channel, which lie side by side; both kinds of elements, labels and values. */
static void channels_are_normalised_apart(void **state)
{
    (void)state;
    uint8_t bytes[] = {0, 51, 102, 255};
    float floats[] = {1, 2, 3, 4};
    float values[] = {5, 6, 7};
    const uint32_t position = 0;
    struct data_spec spec = {.stats = 2, .mean = {0.25, 0.5}, .std = {0.5, 2}};
    struct dataset set = {.layout = {.train_items = 1, .rows = 1, .cols = 2, .channels = 2, .values = 3},
                          .train = {.items = 1, .x = bytes, .values = values}};
    float x[4];
    float y[3];
    struct err err;
    struct feed f;

    feed_init(&f, &set, false, NULL, &spec);
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.values = y}, &err), 0);
    const float mean[] = {0.25f, 0.5f};
    const float std[] = {0.5f, 2};
    for (int i = 0; i < 4; i++)
        assert_true(x[i] == (bytes[i] / 255.0f - mean[i % 2]) / std[i % 2]);
    assert_memory_equal(y, values, sizeof(values));
    set.layout.floats = 1;
    set.train.x = floats;
    feed_init(&f, &set, false, NULL, &spec);
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.values = y}, &err), 0);
    for (int i = 0; i < 4; i++)
        assert_true(x[i] == (floats[i] - mean[i % 2]) / std[i % 2]);
    spec = (struct data_spec){.stats = 1, .std = {1}, .scale = 2};
    feed_init(&f, &set, false, NULL, &spec);
    assert_false(f.as_is);
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.values = y}, &err), 0);
    assert_true(x[0] == 0.5f && x[3] == 2);
    spec.scale = 0;
    feed_init(&f, &set, false, NULL, &spec);
    assert_true(f.as_is);
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.values = y}, &err), 0);
    assert_memory_equal(x, floats, sizeof(floats));
}

/* Every token has its label, the one behind it; one that the model does not have is an error. */
static void tokens_have_labels_behind_them(void **state)
{
    (void)state;
    char path[] = "/tmp/test_feed.XXXXXX";
    cleanup_close int fd = mkstemp(path);
    const uint32_t position = 1;
    const struct data_spec spec = {.stats = 1, .std = {1}};
    struct dataset set = {.layout = {.train_items = 2, .rows = 3, .cols = 1, .channels = 1, .steps = 3}};
    float x[3];
    int32_t y[3];
    struct err err;
    struct feed f;

    assert_true(fd >= 0 && write(fd, "abcdefgh", 8) == 8);
    cleanup_tokens struct tokens *t = tokens_open(path, 3, &err);
    assert_int_equal(unlink(path), 0);
    assert_non_null(t);
    set.train = (struct data_part){.items = 2, .tokens = t};
    feed_init(&f, &set, false, NULL, &spec);
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.labels = y}, &err), 0);
    assert_true(x[0] == 'd' && x[2] == 'f' && y[0] == 'e' && y[2] == 'g');
    f.vocab = 'g';
    assert_int_equal(feed_batch(&f, &position, 1, x, &(struct feed_targets){.labels = y}, &err), -1);
    assert_non_null(strstr(err.msg, "token 6: 103, expected 0..102"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_torchvisions),
        cmocka_unit_test(batches_follow_the_subset),
        cmocka_unit_test(batches_of_any_length_hold_their_samples),
        cmocka_unit_test(channels_are_normalised_apart),
        cmocka_unit_test(tokens_have_labels_behind_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_feed.c - grey levels as torchvision makes them, and which samples a batch holds. */
#include "test.h"

#include "trainer/feed.h"

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
    struct feed f;

    feed_init(&f, NULL, NULL, NULL, 1, 0.5, 0.5);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        if (f.value[want[i].level] != want[i].value)
            fail_msg("level %d: %a, expected %a", want[i].level, (double)f.value[want[i].level],
                     (double)want[i].value);
}

static void batches_follow_the_subset(void **state)
{
    (void)state;
    const uint8_t images[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint8_t labels[] = {9, 8, 7, 6};
    const uint32_t subset[] = {3, 1};
    const uint32_t positions[] = {1, 0, 1};
    float x[6];
    int32_t y[3];
    struct feed f;

    feed_init(&f, images, labels, subset, 2, 0, 1);
    feed_batch(&f, positions, 3, x, y);
    const float want[] = {2 / 255.0f, 3 / 255.0f, 6 / 255.0f, 7 / 255.0f, 2 / 255.0f, 3 / 255.0f};
    assert_memory_equal(x, want, sizeof(want));
    assert_true(y[0] == 8 && y[1] == 6 && y[2] == 8);
    feed_init(&f, images, labels, NULL, 2, 0, 1);
    feed_batch(&f, positions, 2, x, y);
    assert_true(y[0] == 8 && y[1] == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_torchvisions),
        cmocka_unit_test(batches_follow_the_subset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

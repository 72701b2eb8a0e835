/* test_crc32c.c - known values, and the instruction against the table. */
#include "common/cleanup.h"
#include "test.h"
#include "trainer/events/crc32c.h"

#include <string.h>

static void test_known(void **state)
{
    uint8_t bytes[32];

    (void)state;
    /* RFC 3720, B.4 */
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aaU);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43U);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794eU);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283U);
    assert_int_equal(crc32c("", 0), 0);
    assert_int_equal(crc32c_table("123456789", 9), 0xe3069283U);
}

static void test_same_at_every_length_and_offset(void **state)
{
    uint8_t bytes[80];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 8; from++) {
        for (size_t len = 0; from + len <= sizeof(bytes); len++)
            assert_int_equal(crc32c(bytes + from, len), crc32c_table(bytes + from, len));
    }
}

static void test_mask(void **state)
{
    (void)state;
    assert_int_equal(crc32c_mask(0), 0xa282ead8U);
    assert_int_equal(crc32c_mask(0x8000U), 0xa282ead9U);
    assert_int_equal(crc32c_mask(1), (1U << 17) + 0xa282ead8U);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_same_at_every_length_and_offset),
        cmocka_unit_test(test_mask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

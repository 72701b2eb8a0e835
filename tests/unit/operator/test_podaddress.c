/* test_podaddress.c - which addresses of pods may be polled, and under which URL. */
#include "common/cleanup.h"
#include "operator/podaddress.h"
#include "test.h"

static void test_urls(void **state)
{
    static const struct {
        const char *ip, *url;
    } ROWS[] = {
        {"10.244.1.7", "http://10.244.1.7:29402/progress"},
        {"172.16.0.1", "http://172.16.0.1:29402/progress"},
        {"192.168.3.4", "http://192.168.3.4:29402/progress"},
        {"100.64.0.9", "http://100.64.0.9:29402/progress"},
        {"8.8.8.8", "http://8.8.8.8:29402/progress"},
        {"223.255.255.255", "http://223.255.255.255:29402/progress"},
        {"fd00:10:244::1f", "http://[fd00:10:244::1f]:29402/progress"},
        {"2A00:1450:4001:0:0:0:0:0001", "http://[2a00:1450:4001::1]:29402/progress"},
        {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
         "http://[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:29402/progress"},
        {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
         "http://[3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:29402/progress"},
    };
    char url[PODADDRESS_URL_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        if (!podaddress_url(ROWS[i].ip, url))
            fail_msg("%s: refused", ROWS[i].ip);
        assert_string_equal(url, ROWS[i].url);
    }
}

static void test_refused(void **state)
{
    static const char *const ROWS[] = {
        /* loopback, this network, unspecified */
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1",
        /* link-local: a cloud's metadata */
        "169.254.169.254", "169.254.0.1", "fe80::1", "febf::1",
        /* multicast, reserved, broadcast */
        "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255", "ff02::1", "ff05::2",
        /* protocol assignments, what was site-local, discard-only, unassigned */
        "192.0.0.170", "fec0::1", "100::1", "4000::1", "8000::1",
        /* an IPv4 address inside an IPv6 one */
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1",
        "2001:0:7f00:1::1", "2001:1ff::1",
        /* no address, or another spelling of one */
        "", "localhost", "10.0.0", "10.0.0.1.", "10.0.0.256", "010.0.0.1", "0x0a.0.0.1", "167772161",
        "10.0.0.1:80", "10.0.0.1/", "10.0.0.1@evil", " 10.0.0.1", "10.0.0.1 ", "10.0.0.1\n", "fd00::1%eth0",
        "[fd00::1]", "fd00:::1", "fd00::1/64", "user@10.0.0.1", "10.0.0.1#", "10.0.0.1?x"};
    char url[PODADDRESS_URL_BYTES] = "untouched";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        if (podaddress_url(ROWS[i], url))
            fail_msg("%s: %s", ROWS[i], url);
    assert_string_equal(url, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_urls), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests_name("podaddress", tests, NULL, NULL);
}

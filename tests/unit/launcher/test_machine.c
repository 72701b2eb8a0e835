/* test_machine.c - devices, error files, ports. */
#include "common/fsutil.h"
#include "failing.h"
#include "launcher/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_error_messages(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"message\": {\"message\": \"ValueError: a\\n\\\"b\\\"\", \"extraInfo\": {\"timestamp\": \"1\"}}}",
         "ValueError: a\n\"b\""},
        {"{\"message\":\"plain\"}", "plain"},
        {"{\"message\": {\"extraInfo\": {}, \"message\" : \"late\"}}", "late"},
        {"{\"message\":\"\\u00e9x", "?x"},
        {"{\"message\":\"cut\\", "cut"},
        {"{\"message\":\"red \033[31m, \\\033[31m\\\177\"}", "red  [31m,  [31m "}, /* no word to a terminal */
        {"{\"message\": 3}", NULL},
        {"", NULL},
        {"\"message\"", NULL},
    };
    char path[] = "/tmp/test-machine-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        struct err err = {0};
        assert_int_equal(fs_write_atomic(path, cases[i].text, strlen(cases[i].text), &err), 0);
        const char *got = machine_error_message(path, &a);
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
        else
            assert_null(got);
    }
    unlink(path);
    cleanup_arena struct arena a = {0};
    assert_null(machine_error_message(path, &a));
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* nobody writes to it */
    assert_null(machine_error_message(path, &a));
    alarm(0);
    unlink(path);
}

static void test_gpus(void **state)
{
    static const char *const names[] = {"nvidia0",    "nvidia1", "nvidia12", "nvidiactl",
                                        "nvidia-uvm", "nvidia",  "x1"};
    char dir[] = "/tmp/test-machine-XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(machine_gpus(dir), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err err = {0};
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        assert_int_equal(fs_write_atomic(path, "", 0, &err), 0);
    }
    assert_int_equal(machine_gpus(dir), 3);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    assert_int_equal(machine_gpus(dir), 0);
}

static int64_t count_gpus(void *dir)
{
    failing_begin();
    return machine_gpus(dir);
}

/* No memory is not the same as no GPU: ranks would be started on CPUs. */
static void test_gpus_without_memory(void **state)
{
    struct failing_end end;

    (void)state;
    if (failing_skip())
        skip();
    failing_try(1, count_gpus, (char[]){"/dev"}, &end);
    assert_true(end.exhausted);
}

static void test_ports_and_ids(void **state)
{
    cleanup_arena struct arena a = {0};
    struct err err = {0};
    int port = 0;

    (void)state;
    assert_int_equal(machine_free_port(&port, &err), 0);
    assert_true(port > 0 && port < 65536);
    const char *x = machine_random_id(&a), *y = machine_random_id(&a);
    assert_true(strlen(x) == 16 && strcmp(x, y) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_messages),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_gpus_without_memory),
        cmocka_unit_test(test_ports_and_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

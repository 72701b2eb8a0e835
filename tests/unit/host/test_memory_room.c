/* test_memory_room.c - memory limits as containers show them, in a made-up file system root. */
#include "test.h"

#include "fake_root.h"

#include "common/cleanup.h"
#include "host/memory_room.h"

#include <stdlib.h>

struct file {
    const char *path, *text;
};

#define V2 "/sys/fs/cgroup/"
#define V1 "/sys/fs/cgroup/memory/"

static void the_least_room_of_all_levels(void **state)
{
    static const struct {
        struct file files[6];
        uint64_t room;
    } cases[] = {
        {{{0}}, MEMORY_ROOM_ANY},
        {{{V2 "memory.max", "max\n"}, {V2 "memory.current", "5\n"}}, MEMORY_ROOM_ANY},
        {{{V2 "memory.max", "1000\n"}}, MEMORY_ROOM_ANY},
        {{{V2 "memory.max", "1000\n"}, {V2 "memory.current", "300\n"}}, 700},
        {{{V2 "memory.max", "1000\n"}, {V2 "memory.current", "1300\n"}}, 0},
        {{{V2 "memory.max", "1000\n"},
          {V2 "memory.current", "900\n"},
          {V2 "memory.stat", "anon 200\nfile 700\ninactive_file 500\nactive_file 100\n"}},
         700},
        {{{V2 "memory.max", "1000\n"},
          {V2 "memory.current", "9\n"},
          {V2 "memory.stat", "inactive_file 50\n"}},
         1000},
        {{{"/proc/self/cgroup", "0::/a/b\n"},
          {V2 "a/b/memory.max", "1000\n"},
          {V2 "a/b/memory.current", "100\n"},
          {V2 "a/memory.max", "600\n"},
          {V2 "a/memory.current", "200\n"}},
         400},
        {{{V1 "memory.limit_in_bytes", "1000\n"},
          {V1 "memory.usage_in_bytes", "800\n"},
          {V1 "memory.stat", "inactive_file 1\ntotal_inactive_file 300\n"}},
         500},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char root[] = "/tmp/tk-room-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (size_t k = 0; k < ARRAY_LEN(cases[i].files) && cases[i].files[k].path; k++)
            fake_root_put(root, cases[i].files[k].path, cases[i].files[k].text);
        const uint64_t room = memory_room_under(root);
        if (room != cases[i].room)
            fail_msg("case %zu: %llu", i, (unsigned long long)room);
        fake_root_remove(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_least_room_of_all_levels)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

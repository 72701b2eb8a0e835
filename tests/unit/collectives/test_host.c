/* test_host.c - every collective between the ranks of one pod. */
#include "calls.h"

int main(void)
{
    static const struct ranks_layout layouts[] = {{.world = 1}, {.world = 2}, {.world = 3},
                                                  {.world = 4}, {.world = 8}, {.world = 16}};

    return calls_main(layouts, ARRAY_LEN(layouts));
}

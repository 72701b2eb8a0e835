/* test_pods.c - every collective between the ranks of several pods. */
#include "calls.h"

int main(void)
{
    static const struct ranks_layout layouts[] = {
        {.world = 2, .per_pod = 1}, {.world = 3, .per_pod = 1}, {.world = 4, .per_pod = 2},
        {.world = 3, .per_pod = 2}, /* pods of unlike size */
        {.world = 6, .per_pod = 2}, {.world = 8, .per_pod = 1}, {.world = 9, .per_pod = 3},
    };

    return calls_main(layouts, ARRAY_LEN(layouts));
}

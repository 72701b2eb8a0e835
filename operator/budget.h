/* budget.h - how much memory the passes under way may hold while their requests are out. Pure.
 *
 * What a pass holds is its plan, and each body once more, since libcurl copies it. A pass up to BUDGET_FREE_BYTES always
 * begins, so that small jobs never wait for large ones. A larger one begins while all passes together stay within
 * BUDGET_BYTES, and those of its namespace within a quarter of that; the last quarter is for namespaces that hold nothing. So at the most, with as many passes as there may be
 * (WORKQUEUE_PARALLEL):
 *
 *     16 MiB + 64 x 96 KiB = 22 MiB,
 *
 * besides the pass that is being planned. One pass takes less than the quarter: 2 x (512 + 264) KiB of pods, 2 x 264 KiB of
 * TensorBoard's, 2 x 400 KiB of a status with 1,024 replicas, and 600 KiB of notes are 3.4 MiB.
 *
 * Ownership: a share belongs to its pass, and its namespace too; it stands in the budget from budget_take to budget_give.
 */
#ifndef TK_OPERATOR_BUDGET_H
#define TK_OPERATOR_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BUDGET_BYTES = 16 << 20,
    BUDGET_NS_BYTES = BUDGET_BYTES / 4,
    BUDGET_FREE_BYTES = 96 << 10,
};

/* A zeroed one holds nothing. */
struct budget_share {
    const char *ns;
    size_t bytes;
    struct budget_share *next, **at;
};

struct budget {
    struct budget_share *first;
    size_t held_bytes;
};

/* Whether a pass of this namespace may hold so much. The only pass always may. */
bool budget_has_room(const struct budget *b, const char *ns, size_t bytes);

void budget_take(struct budget *b, struct budget_share *s, const char *ns, size_t bytes);
void budget_give(struct budget *b, struct budget_share *s);

/* How much of pods' bodies the next pass may make: PLAN_CREATE_BYTES where nothing is held, PLAN_FIRST_BYTES at least. */
size_t budget_create_bytes(const struct budget *b);

#endif

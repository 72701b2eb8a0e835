/* budget.h - limit the memory that reconciles in progress hold while they wait for their requests. Pure.
 *
 * A reconcile (struct pass) holds its plan, and each body a second time, since libcurl copies it. An edit counts
 * with the object that it reads and writes back. A reconcile
 * up to BUDGET_FREE_BYTES always begins, so that small jobs never wait for large ones. A larger one begins
 * only while all reconciles together stay within BUDGET_BYTES, and those of its namespace within a quarter of
 * that. The last quarter is reserved for namespaces that hold nothing. So with the largest number of
 * reconciles (WORKQUEUE_PARALLEL) the limit is
 *
 *     16 MiB + 64 x 96 KiB = 22 MiB,
 *
 * plus the one that is being planned. One needs less than the quarter: 2 x (512 + 264) KiB for pods, 2 x 264
 * KiB for TensorBoard, 2 x 400 KiB for a status with 1,024 replicas, and 600 KiB of notes are 3.4 MiB.
 *
 * Ownership: a share and its namespace's name belong to the reconcile; the share is linked into the budget
 *            from budget_take to budget_give.
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

/* The memory that one reconcile holds. A zeroed struct holds nothing. */
struct budget_share {
    const char *ns;
    size_t bytes;
    struct budget_share *next, **at;
};

struct budget {
    struct budget_share *first;
    size_t held_bytes;
};

/* Whether a reconcile of this namespace may hold this much. Always true while none holds anything. */
bool budget_has_room(const struct budget *b, const char *ns, size_t bytes);

void budget_take(struct budget *b, struct budget_share *s, const char *ns, size_t bytes);
void budget_give(struct budget *b, struct budget_share *s);

/* The limit of pod bodies for the next plan: PLAN_CREATE_BYTES while nothing is held, less the more is held,
 * at least PLAN_FIRST_BYTES. */
size_t budget_create_bytes(const struct budget *b);

#endif

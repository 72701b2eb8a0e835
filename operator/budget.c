/* budget.c - count the memory that reconciles hold, in total and per namespace. */
#include "operator/budget.h"

#include "operator/plan/plan.h"

#include <string.h>

bool budget_has_room(const struct budget *b, const char *ns, size_t bytes)
{
    size_t of_ns = bytes;

    for (const struct budget_share *s = b->first; s; s = s->next)
        of_ns += strcmp(s->ns, ns) == 0 ? s->bytes : 0;
    size_t most = of_ns == bytes ? BUDGET_BYTES : BUDGET_BYTES - BUDGET_NS_BYTES;
    return bytes <= BUDGET_FREE_BYTES || b->held_bytes == 0 ||
           (b->held_bytes + bytes <= most && of_ns <= BUDGET_NS_BYTES);
}

void budget_take(struct budget *b, struct budget_share *s, const char *ns, size_t bytes)
{
    *s = (struct budget_share){.ns = ns, .bytes = bytes, .next = b->first, .at = &b->first};
    if (s->next)
        s->next->at = &s->next;
    b->first = s;
    b->held_bytes += bytes;
}

void budget_give(struct budget *b, struct budget_share *s)
{
    if (!s->at)
        return;
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    b->held_bytes -= s->bytes;
    *s = (struct budget_share){0};
}

size_t budget_create_bytes(const struct budget *b)
{
    size_t room = b->held_bytes < BUDGET_BYTES ? BUDGET_BYTES - b->held_bytes : 0;
    size_t bytes = room / (BUDGET_BYTES / PLAN_CREATE_BYTES);

    return bytes > PLAN_FIRST_BYTES ? bytes : PLAN_FIRST_BYTES;
}

/* quiet.c - measure how long a round's ranks have made no progress. */
#include "launcher/quiet.h"

void quiet_begin(struct quiet *q, int64_t limit_ms, int64_t now_ms)
{
    *q = (struct quiet){.limit_ms = limit_ms, .sign_ms = now_ms, .looked_ms = now_ms};
}

void quiet_sign(struct quiet *q, int64_t at_ms)
{
    if (at_ms > q->sign_ms)
        q->sign_ms = at_ms;
}

bool quiet_look(struct quiet *q, int64_t now_ms)
{
    const int64_t gap = now_ms - q->looked_ms;

    if (gap > QUIET_LATE_MS)
        quiet_sign(q, q->sign_ms + gap > now_ms ? now_ms : q->sign_ms + gap);
    q->looked_ms = now_ms;
    return now_ms - q->sign_ms >= q->limit_ms;
}

int64_t quiet_due_ms(const struct quiet *q)
{
    const int64_t look_ms = q->limit_ms / 4 < QUIET_LOOK_MS ? q->limit_ms / 4 : QUIET_LOOK_MS;
    const int64_t end_ms = q->sign_ms + q->limit_ms, due_ms = q->looked_ms + look_ms;

    return end_ms > q->looked_ms && end_ms < due_ms ? end_ms : due_ms;
}

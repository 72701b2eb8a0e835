/* requests.c - apply requests to the store's table. */
#include "rendezvous/requests.h"

#include <string.h>

static enum protocol_status add(struct table *t, const struct protocol_request *r, char sum[static 8])
{
    struct view old;
    int64_t value = 0, total;

    if (table_get(t, r->key, &old) && !protocol_number(old, &value))
        return STATUS_BAD;
    if (__builtin_add_overflow(value, r->number, &total))
        return STATUS_BAD;
    protocol_put_number(total, sum);
    return table_set(t, r->key, (struct view){sum, 8}) ? STATUS_OK : STATUS_FULL;
}

static enum protocol_status compare_set(struct table *t, const struct protocol_request *r,
                                        struct view *payload)
{
    struct view old = {NULL, 0};

    bool there = table_get(t, r->key, &old);
    if (there ? r->expected.len != old.len || (old.len && memcmp(r->expected.p, old.p, old.len) != 0)
              : r->expected.len != 0) {
        *payload = old;
        return STATUS_CONFLICT;
    }
    return table_set(t, r->key, r->value) ? STATUS_OK : STATUS_FULL;
}

enum protocol_status request_apply(struct table *t, const struct protocol_request *r, char sum[static 8],
                                   struct view *payload)
{
    enum protocol_status status = STATUS_BAD;

    *payload = (struct view){NULL, 0};
    switch (r->op) {
    case OP_SET:
        return table_set(t, r->key, r->value) ? STATUS_OK : STATUS_FULL;
    case OP_ADD:
        status = add(t, r, sum);
        *payload = (struct view){sum, status == STATUS_OK ? 8 : 0};
        break;
    case OP_COMPARE_SET:
        return compare_set(t, r, payload);
    case OP_GET:
    case OP_WAIT_COUNT:
        break;
    }
    return status;
}

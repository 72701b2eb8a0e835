/* table.h - the server's keys and values, bounded in number and bytes.
 *
 * Ownership: the table copies what it is given; views it gives are valid until the next change.
 */
#ifndef TK_RENDEZVOUS_TABLE_H
#define TK_RENDEZVOUS_TABLE_H

#include "rendezvous/protocol.h"

struct table_entry;

enum { TABLE_BUCKETS = 1024 };

struct table {
    struct table_entry *buckets[TABLE_BUCKETS];
    size_t keys, bytes;
    size_t max_keys, max_bytes;
};

void table_release(struct table *t);

/* False when the key is absent. */
bool table_get(const struct table *t, struct view key, struct view *ret);

/* False when there is no room: the table is as it was. */
bool table_set(struct table *t, struct view key, struct view value);

#endif

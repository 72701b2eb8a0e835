/* table.h - the store server's hash table of keys and values, bounded in number and bytes.
 *
 * Ownership: a zeroed struct with max_keys and max_bytes set is an empty table; table_release frees its entries.
 *            The table copies keys and values; a view from table_get is valid until the next table_set.
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

/* Set or replace a key. False when there is no room: the table is unchanged. */
bool table_set(struct table *t, struct view key, struct view value);

#endif

/* store.h - the client's end of a run's key-value store: where ranks leave addresses and meet.
 *
 * Ownership: store_connect gives a connection that store_close ends. A value read is appended to the caller's buf.
 * Threads:   one thread uses a connection at a time; several connections may be used by several threads.
 * Units:     timeout_ms bounds one call, waiting included, and the resolving of a host's name.
 * Errors:    ERR_TIMEOUT (the deadline passed), ERR_PEER (the server went away), ERR_CONFLICT (compare_set: someone
 *            was first), ERR_INVALID (the run id was refused, a key or value is too large, the store is full),
 *            ERR_TRANSIENT (the server has no room for another client). A wait in vain leaves the connection usable; a
 *            server that does not answer at all gets a second more, then the connection is given up.
 */
#ifndef TK_RENDEZVOUS_STORE_H
#define TK_RENDEZVOUS_STORE_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORE_KEY_BYTES = 255, STORE_VALUE_BYTES = 64 * 1024, STORE_RUN_ID_BYTES = 255 };

struct store;
struct resolver;

/* Connect to host:port, trying again until the server is there. NULL on failure. */
struct store *store_connect(const char *host, int port, const char *run_id, int64_t timeout_ms,
                            struct err *err);
/* The same for one who tries again and again: by the resolver of that host and port, which stays the caller's. */
struct store *store_connect_by(struct resolver *at, const char *host, int port, const char *run_id,
                               int64_t timeout_ms, struct err *err);
void store_close(struct store *s);

/* False when the connection has failed: what follows on it fails too. */
bool store_usable(const struct store *s);

/* Our own address on the way to the server, and the server's, as text. */
int store_local_address(const struct store *s, char *out, size_t size, struct err *err) MUST_CHECK;
int store_peer_address(const struct store *s, char *out, size_t size, struct err *err) MUST_CHECK;

int store_set(struct store *s, const char *key, const void *value, size_t len, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Wait until the key is there. */
int store_get(struct store *s, const char *key, struct buf *out, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Add to a counter (an absent key counts 0); *ret is its new value. */
int store_add(struct store *s, const char *key, int64_t delta, int64_t *ret, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Set the key if its value is `expected` (expected_len 0: if it is absent); ERR_CONFLICT otherwise, and then the
 * value it has is appended to *found (may be NULL). */
int store_compare_set(struct store *s, const char *key, const void *expected, size_t expected_len,
                      const void *value, size_t len, struct buf *found, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;

/* Wait until a counter is at least `count`. */
int store_wait_count(struct store *s, const char *key, int64_t count, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;

/* The same, but done by the server when this connection has ended, store_close or not; not when it only fell silent. A
 * connection has room for a few (1 KiB, ERR_INVALID). */
int store_will_set(struct store *s, const char *key, const void *value, size_t len, int64_t timeout_ms,
                   struct err *err) MUST_CHECK;
int store_will_add(struct store *s, const char *key, int64_t delta, int64_t timeout_ms,
                   struct err *err) MUST_CHECK;

static inline void store_closep(struct store **s)
{
    store_close(*s);
}
#define cleanup_store __attribute__((cleanup(store_closep)))

#endif

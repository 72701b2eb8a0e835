/* store.h - client of a run's key-value store (server.h), in which ranks and launchers exchange addresses and
 * states.
 *
 * Ownership: store_connect creates a connection, store_close ends it. A value that is read is appended to the
 *            caller's buf.
 * Threads:   one thread uses a connection at a time; several threads may use a connection each.
 * Units:     timeout_ms bounds one call, including name resolution and waiting.
 * Errors:    ERR_TIMEOUT (the deadline passed; code EAI_NONAME: the host's name did not resolve), ERR_PEER (the server went away), ERR_CONFLICT (compare_set:
 *            another client was first), ERR_INVALID (the run id was refused, a key or value is too large, the
 *            store is full), ERR_TRANSIENT (the server has too many clients). When the server reports that a wait
 *            timed out, the connection stays usable. A server that does not answer at all gets one second more;
 *            then the connection has failed.
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

/* Connect to host:port; try again until the server answers or the time has passed. NULL on failure. */
struct store *store_connect(const char *host, int port, const char *run_id, int64_t timeout_ms,
                            struct err *err);
/* The same with the caller's resolver of that host and port, for callers that connect repeatedly. */
struct store *store_connect_by(struct resolver *at, const char *host, int port, const char *run_id,
                               int64_t timeout_ms, struct err *err);
void store_close(struct store *s);

/* False when the connection has failed: every later call on it fails with ERR_PEER. */
bool store_usable(const struct store *s);

/* Keys are strings of 1..STORE_KEY_BYTES bytes; values have at most STORE_VALUE_BYTES. */
int store_set(struct store *s, const char *key, const void *value, size_t len, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Wait until the key exists, and append its value to *out. */
int store_get(struct store *s, const char *key, struct buf *out, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Add to a counter (an absent key counts as 0); *ret is its new value. Counters are values of 8 bytes. */
int store_add(struct store *s, const char *key, int64_t delta, int64_t *ret, int64_t timeout_ms,
              struct err *err) MUST_CHECK;

/* Set the key if its value is `expected` (expected_len 0: if it is absent). Otherwise ERR_CONFLICT, and the key's
 * value is appended to *found (may be NULL). */
int store_compare_set(struct store *s, const char *key, const void *expected, size_t expected_len,
                      const void *value, size_t len, struct buf *found, int64_t timeout_ms,
                      struct err *err) MUST_CHECK;

/* Wait until a counter is at least `count`. */
int store_wait_count(struct store *s, const char *key, int64_t count, int64_t timeout_ms,
                     struct err *err) MUST_CHECK;

static inline void store_closep(struct store **s)
{
    store_close(*s);
}
#define cleanup_store __attribute__((cleanup(store_closep)))

#endif

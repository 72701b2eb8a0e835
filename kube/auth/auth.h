/* auth.h - keeps the configuration's credentials good: files are read again, a credential plugin is run when it must be.
 * Used by http.c only.
 *
 * Ownership: borrows the loop and the configuration; what a plugin gives is kept in the configuration's token,
 *            client_cert and client_key.
 * Units:     milliseconds.
 * Errors:    a plugin that fails, for whatever reason, is ERR_TRANSIENT with its name and the end of its standard
 *            error; never what it wrote to standard output, which is the secret.
 * Order:     one run at a time, shared by all who wait. `changed` comes from the loop after each run.
 *
 * client-go's rules, with bounds added: it runs a plugin again for every request while it fails or while the server says
 * 401. Here a run that failed is not repeated for 1, 2, 4 ... 30 s (its error is the answer meanwhile), nor is one whose
 * credential the server refused as well. Client-go waits for the end of a credential; here a new one is fetched in its
 * last minute (or fifth, of a short one) while the old one is still used.
 */
#ifndef TK_KUBE_AUTH_AUTH_H
#define TK_KUBE_AUTH_AUTH_H

#include "kube/auth/config.h"
#include "kube/loop.h"

enum {
    AUTH_RUN_MAX_MS = 60000, /* a plugin may have to talk to someone; client-go waits for ever */
    AUTH_OUTPUT_MAX_BYTES = 256 << 10,
    AUTH_EARLY_MS = 60000,
    AUTH_BACKOFF_MAX_MS = 30000,
};

struct auth;

enum auth_state {
    AUTH_READY,  /* go */
    AUTH_WAIT,   /* `changed` will come */
    AUTH_FAILED, /* err says why */
};

struct auth *auth_new(struct kube_loop *l, struct kube_config *config, void (*changed)(void *ctx), void *ctx);
void auth_free(struct auth *a);

/* Whether a request may leave now, with what the configuration holds. */
enum auth_state auth_ask(struct auth *a, struct err *err);

/* Which credential that is. */
uint64_t auth_serial(const struct auth *a);

/* A request that left with what was there at `generation` of the configuration was not accepted, or did not accept the server's
 * certificate: whether there is something newer now, with which to try again. */
bool auth_renewed(struct auth *a, uint64_t generation);

/* What the server said to a request that left with this one. */
void auth_answered(struct auth *a, uint64_t serial, int http_status);

#endif

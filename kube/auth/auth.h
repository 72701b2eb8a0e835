/* auth.h - keep the configuration's credentials valid: re-read their files, and run the credential plugin
 * when needed. Used by http.c only.
 *
 * Ownership: borrows the loop and the configuration; a plugin's credential is stored in the configuration's
 *            token, client_cert and client_key.
 * Units:     milliseconds.
 * Errors:    any failure of a plugin is ERR_TRANSIENT with its name and the end of its standard error; never
 *            with its standard output, which holds the secret.
 * Order:     one run at a time, shared by all requests that wait for it. `changed` is called from the loop
 *            after each run.
 *
 * The rules are client-go's with bounds added. client-go runs a plugin again for every request while it fails
 * or while the server answers 401. Here a run that failed is not repeated for 1, 2, 4 ... 30 s, and its error
 * is the answer meanwhile; nor is a run whose credential the server refused again. client-go waits until a
 * credential has expired; here a new one is fetched in the old one's last minute (or last fifth, if it is
 * short-lived), while the old one is still used.
 */
#ifndef TK_KUBE_AUTH_AUTH_H
#define TK_KUBE_AUTH_AUTH_H

#include "kube/auth/config.h"
#include "kube/loop.h"

enum {
    AUTH_RUN_MAX_MS = 60000, /* a plugin may use the network; client-go has no limit */
    AUTH_OUTPUT_MAX_BYTES = 256 << 10,
    AUTH_EARLY_MS = 60000,
    AUTH_BACKOFF_MAX_MS = 30000,
};

struct auth;

enum auth_state {
    AUTH_READY,  /* the request may be sent */
    AUTH_WAIT,   /* a plugin runs: `changed` will be called */
    AUTH_FAILED, /* err says why */
};

struct auth *auth_new(struct kube_loop *l, struct kube_config *config, void (*changed)(void *ctx), void *ctx);
void auth_free(struct auth *a);

/* Whether a request may be sent now, with the credentials that the configuration holds. May start a
 * plugin. */
enum auth_state auth_ask(struct auth *a, struct err *err);

/* Number of the plugin's present credential; 0: none yet. */
uint64_t auth_serial(const struct auth *a);

/* A request sent with the credentials of this `generation` was refused, or did not accept the server's
 * certificate: read the files again. Returns whether the configuration is newer now, so that a retry makes
 * sense. */
bool auth_renewed(struct auth *a, uint64_t generation);

/* Report the HTTP status of a request that was sent with this credential. */
void auth_answered(struct auth *a, uint64_t serial, int http_status);

#endif

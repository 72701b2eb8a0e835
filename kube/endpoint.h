/* endpoint.h - how one libcurl transfer is set up for the API server. Used by http.c only.
 *
 * Ownership: the endpoint borrows the configuration; endpoint_release frees the rest.
 * Errors:    ERR_INVALID: the server's address or the proxy's cannot be used.
 */
#ifndef TK_KUBE_ENDPOINT_H
#define TK_KUBE_ENDPOINT_H

#include "common/buf.h"
#include "kube/auth/config.h"
#include "kube/auth/proxy.h"
#include "kube/transport.h"

#include <curl/curl.h>

/* Silence on a watch's connection, of TCP: after so long the first probe goes out, and then others, and after WATCH_DEAD_S the
 * peer is gone. Where only what we send is lost, the peer repeats its last words in pauses that double, and each of them is a sign
 * of life: the first pause of WATCH_DEAD_S has ended after three times that, 45 s, which is also what client-go takes for
 * a dead connection (apimachinery: util/net/http.go, 30 s and 15 s). */
enum { ENDPOINT_WATCH_IDLE_S = 10, ENDPOINT_WATCH_PROBE_S = 5, ENDPOINT_WATCH_DEAD_S = 15 };

struct endpoint {
    struct kube_config *config;
    char *base;        /* the URL before the path: carries the name that the certificate must show */
    char *host_header; /* NULL: what libcurl makes of base */
    struct curl_slist *connect_to;       /* NULL: where base points */
    char *proxy;                         /* as libcurl wants it; "" for none */
    char proxy_shown[PROXY_SHOWN_BYTES]; /* "" for none */
    char *user_agent;
    int hurry; /* at least 1; see http_options */
};

int endpoint_init(struct endpoint *e, struct kube_config *config, const char *user_agent, int hurry,
                  struct err *err) MUST_CHECK;
void endpoint_release(struct endpoint *e);

/* Everything but the callbacks and what says who we are. `e` must live as long as the easy handle. */
int endpoint_setup(const struct endpoint *e, const struct kube_http_request *req, CURL *easy,
                   struct err *err) MUST_CHECK;

/* When it leaves: headers and TLS with the credentials of now. *ret_headers must live as long as the easy handle. */
int endpoint_sign(const struct endpoint *e, const char *content_type, CURL *easy,
                  struct curl_slist **ret_headers, struct err *err) MUST_CHECK;

#endif

/* endpoint.h - configure a libcurl transfer to the API server: URL, timeouts, TLS, headers. For http.c and transfer.c.
 *
 * Ownership: the endpoint borrows the configuration; endpoint_release frees the rest.
 * Errors:    endpoint_init: ERR_INVALID, the server's URL cannot be used. endpoint_setup and endpoint_sign:
 *            ERR_TRANSIENT, libcurl refuses an option.
 */
#ifndef TK_KUBE_ENDPOINT_H
#define TK_KUBE_ENDPOINT_H

#include "kube/auth/config.h"
#include "kube/transport.h"

#include <curl/curl.h>

/* TCP keepalive of a watch's connection: the first probe is sent after IDLE_S without traffic, further ones
 * every PROBE_S, and the kernel drops the connection when nothing was acknowledged for DEAD_S
 * (TCP_USER_TIMEOUT). Where only the packets to the server are lost, the server retransmits its last data at
 * intervals that double, and each retransmission resets that timeout. The first such interval of DEAD_S or
 * more ends after three times DEAD_S, 45 s. client-go drops a dead connection after the same time
 * (apimachinery: util/net/http.go, 30 s and 15 s). */
enum { ENDPOINT_WATCH_IDLE_S = 10, ENDPOINT_WATCH_PROBE_S = 5, ENDPOINT_WATCH_DEAD_S = 15 };

struct endpoint {
    struct kube_config *config;
    char *user_agent;
};

int endpoint_init(struct endpoint *e, struct kube_config *config, const char *user_agent,
                  struct err *err) MUST_CHECK;
void endpoint_release(struct endpoint *e);

/* Set all options but callbacks, headers and TLS. `e` must live as long as the easy handle. */
int endpoint_setup(const struct endpoint *e, const struct kube_http_request *req, CURL *easy,
                   struct err *err) MUST_CHECK;

/* Set headers and TLS from the current credentials. Call it just before the transfer is sent. *ret_headers
 * must live as long as the easy handle. */
int endpoint_sign(const struct endpoint *e, const char *content_type, CURL *easy,
                  struct curl_slist **ret_headers, struct err *err) MUST_CHECK;

#endif

/* endpoint.h - configure a libcurl transfer to the API server: URL, timeouts, TLS, headers. For http.c.
 *
 * Errors:    ERR_TRANSIENT: libcurl refuses an option.
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

/* ERR_INVALID: the server's URL cannot be used. */
int endpoint_check(const char *server, struct err *err) MUST_CHECK;

/* Set all options but callbacks, headers and TLS. c->server has passed endpoint_check. */
int endpoint_setup(const struct kube_config *c, const char *user_agent, const struct kube_http_request *req,
                   CURL *easy, struct err *err) MUST_CHECK;

/* Set headers and TLS from the current credentials. Call it just before the transfer is sent. *ret_headers
 * must live as long as the easy handle. */
int endpoint_sign(const struct kube_config *c, const char *content_type, CURL *easy,
                  struct curl_slist **ret_headers, struct err *err) MUST_CHECK;

#endif

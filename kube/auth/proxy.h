/* proxy.h - which proxy the way to a server goes through, by the rules of Go's HTTP client. Pure.
 *
 * Errors: ERR_INVALID naming what was expected; never the user and password that a proxy's URL may hold.
 */
#ifndef TK_KUBE_AUTH_PROXY_H
#define TK_KUBE_AUTH_PROXY_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>

enum { PROXY_SHOWN_BYTES = 120 };

/* http://, https:// or socks5:// with a host. */
int proxy_check(const char *url, struct err *err) MUST_CHECK;

/* The URL less user and password, for messages. */
void proxy_shown(const char *url, char out[static PROXY_SHOWN_BYTES]);

/* Whether the list NO_PROXY keeps a server out: separated by commas, each of them "*", an address, a network
 * (10.0.0.0/8), a name (with all below it), ".name" or "*.name" (only what is below), and all but networks with ":port"
 * if wanted. "localhost" and loopback addresses never have a proxy. server: "https://host:port/path". */
bool proxy_bypassed(const char *no_proxy, const char *server);

/* What the environment says for an https server: a malloc'd URL in *ret, or NULL for none. https_proxy without a scheme
 * is taken for http://. HTTP_PROXY is for plain http, which we speak on this machine only, where no proxy is used. */
int proxy_from_environment(const char *https_proxy, const char *no_proxy, const char *server, char **ret,
                           struct err *err) MUST_CHECK;

#endif

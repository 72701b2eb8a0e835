/* proxy.h - choose the HTTP or SOCKS proxy for a server from HTTPS_PROXY and NO_PROXY, by the rules of Go's
 * HTTP client. Pure.
 *
 * Errors:    ERR_INVALID naming what was expected; never with the user and password that a proxy's URL may
 *            hold.
 */
#ifndef TK_KUBE_AUTH_PROXY_H
#define TK_KUBE_AUTH_PROXY_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>

enum { PROXY_SHOWN_BYTES = 120 };

/* Check the URL of a proxy: http://, https:// or socks5:// with a host. */
int proxy_check(const char *url, struct err *err) MUST_CHECK;

/* The URL without user and password, for messages. */
void proxy_shown(const char *url, char out[static PROXY_SHOWN_BYTES]);

/* Whether NO_PROXY excludes a server. The list is separated by commas; an entry is "*", an address, a network
 * (10.0.0.0/8), a name (with all names below it), ".name" or "*.name" (only the names below it). All but "*"
 * and networks may have ":port". "localhost" and loopback addresses never use a proxy. server:
 * "https://host:port/path". */
bool proxy_bypassed(const char *no_proxy, const char *server);

/* The proxy for a server from the values of the environment: a malloc'd URL in *ret, or NULL for none.
 * https_proxy without a scheme means http://. HTTP_PROXY is not used: it is for plain http, which is sent to
 * this machine only, and without a proxy. */
int proxy_from_environment(const char *https_proxy, const char *no_proxy, const char *server, char **ret,
                           struct err *err) MUST_CHECK;

#endif

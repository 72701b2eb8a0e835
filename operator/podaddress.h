/* podaddress.h - the URL at which the launcher in a pod serves its progress. Pure.
 *
 * A pod's address comes from its status, which others than the kubelet may be able to write. They must not be
 * able to make the operator send requests to hosts that they cannot reach (SSRF). So it accepts only global
 * and private unicast addresses: no loopback, link-local (such as 169.254.169.254), multicast, unspecified or
 * reserved ones, and no IPv6 addresses that embed an IPv4 one.
 */
#ifndef TK_OPERATOR_PODADDRESS_H
#define TK_OPERATOR_PODADDRESS_H

#include <stdbool.h>

enum { PODADDRESS_URL_BYTES = 80 };

/* "http://10.1.2.3:29402/progress"; IPv6 in brackets. False: the address is not accepted. */
bool podaddress_url(const char *ip, char url[static PODADDRESS_URL_BYTES]);

#endif

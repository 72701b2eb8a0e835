/* podaddress.h - the URL at which the launcher in a pod serves its progress. Pure.
 *
 * A pod's address comes from its status, which not only the kubelet may be able to write: the operator must not be a tool
 * to reach what its writer cannot. Only addresses of a pod's kind are taken: global and private unicast ones, never
 * loopback, link-local (169.254.169.254 among them), multicast, unspecified or reserved ones, nor IPv6 addresses that stand
 * for an IPv4 one.
 */
#ifndef TK_OPERATOR_PODADDRESS_H
#define TK_OPERATOR_PODADDRESS_H

#include <stdbool.h>

enum { PODADDRESS_URL_BYTES = 80 };

/* "http://10.1.2.3:29402/progress"; IPv6 in brackets. False: there is none for this address. */
bool podaddress_url(const char *ip, char url[static PODADDRESS_URL_BYTES]);

#endif

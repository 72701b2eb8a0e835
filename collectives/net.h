/* net.h - the few TCP calls that ranks of several pods need. All sockets are non-blocking and close on exec.
 *
 * Addresses: 16 bytes of IPv6, or an IPv4 address mapped into it.
 * Errors:    ERR_FATAL when the system refuses; what a peer does shows at the descriptor.
 */
#ifndef TK_COLLECTIVES_NET_H
#define TK_COLLECTIVES_NET_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A port of the system's choice at every address. The descriptor, or -1. */
int net_listen(int *port, struct err *err) MUST_CHECK;

/* -1 when there is none, or it cannot be taken. */
int net_accept(int listener);

/* Begin to connect; -1 when that fails at once. net_connected: 1 yes, 0 not yet, -1 failed. */
int net_connect(const uint8_t addr[16], int port);
int net_connected(int fd);

/* The address of the other end, and whether it is this host's loopback. */
bool net_peer(int fd, uint8_t addr[16]);
bool net_is_loopback(const uint8_t addr[16]);

/* Notice a lost host within 4 s while nothing is under way. `strict`: also while bytes are; only for a link whose reader
 * always reads, since a window that stays closed for so long counts as lost too. */
void net_tune(int fd, bool strict);

/* 1: ready; 0: the time has passed; -1: interrupted. */
int net_wait(int fd, short events, int ms);

#endif

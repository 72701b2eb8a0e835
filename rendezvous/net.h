/* net.h - TCP sockets between pods: listen, accept, connect, keepalive. All sockets are non-blocking and
 * close-on-exec; the caller closes them.
 *
 * Addresses: 16 bytes: IPv6, or an IPv4-mapped IPv6 address.
 * Errors:    net_listen: ERR_CONFLICT when the port is taken, ERR_FATAL when a system call fails. The others
 *            return -1 or false.
 */
#ifndef TK_RENDEZVOUS_NET_H
#define TK_RENDEZVOUS_NET_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Listen at `port` on all IPv6 and IPv4 addresses; port 0: the kernel chooses one. *ret_port: the port in
 * use. Returns the descriptor, or -1. */
int net_listen(int port, int *ret_port, struct err *err) MUST_CHECK;

/* Accept one connection; addr: the peer's. Returns the descriptor, or -1 with errno: EAGAIN when none is
 * waiting. */
int net_accept(int listener, uint8_t addr[static 16]);

/* Start to connect. Returns a descriptor, or -1 when it fails at once. net_connected returns 1 connected, 0
 * in progress, -1 failed. */
int net_connect(const uint8_t addr[16], int port);
int net_connected(int fd);

/* Copy the address of a sockaddr, or of a socket's peer, to addr. False: it is not IPv4 or IPv6, or not
 * known. */
bool net_address(const struct sockaddr *from, uint8_t addr[static 16]);
bool net_peer(int fd, uint8_t addr[16]);
bool net_is_loopback(const uint8_t addr[16]);

/* Set TCP_NODELAY, and keepalive so that a lost host breaks an idle connection within `lost_ms` (at least 3 s). `strict`: also while
 * sent bytes are unacknowledged (TCP_USER_TIMEOUT). That is only for a link whose peer always reads, because a
 * receive window that stays closed for so long breaks the connection too. */
enum { NET_LOST_MS = 4000 }; /* of links between ranks */
void net_tune(int fd, int64_t lost_ms, bool strict);

/* Poll one descriptor for `ms` milliseconds. 1: ready; 0: timeout; -1: poll failed, for example by a signal.
 * With fd -1 it only sleeps. */
int net_wait(int fd, short events, int ms);

#endif

/* net.h - TCP sockets between pods: listen, accept, connect, keepalive. All sockets are non-blocking and
 * close-on-exec; the caller closes them.
 *
 * Addresses: 16 bytes: IPv6, or IPv4 mapped into it.
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

/* Listen on all addresses at `port`, IPv6 and IPv4; 0: one that the kernel chooses. *ret_port: which it is.
 * Returns the descriptor, or -1. */
int net_listen(int port, int *ret_port, struct err *err) MUST_CHECK;

/* Accept one connection, and where it comes from. -1 with errno: EAGAIN when none is waiting. */
int net_accept(int listener, uint8_t addr[static 16]);

/* Start to connect: a descriptor, or -1 when it fails at once. net_connected then tells how far it is: 1
 * connected, 0 in progress, -1 failed. */
int net_connect(const uint8_t addr[16], int port);
int net_connected(int fd);

/* The address in a socket address, which is IPv4 or IPv6; else false. The peer's; false when it is not known. And whether an address
 * is a loopback address. */
bool net_address(const struct sockaddr *from, uint8_t addr[static 16]);
bool net_peer(int fd, uint8_t addr[16]);
bool net_is_loopback(const uint8_t addr[16]);

/* Set TCP_NODELAY, and keepalive so that a lost host breaks an idle connection within `lost_ms` (at least 3 s). `strict`: also while
 * sent bytes are unacknowledged (TCP_USER_TIMEOUT). That is only for a link whose peer always reads, because a
 * receive window that stays closed for so long breaks the connection too. */
enum { NET_LOST_MS = 4000 }; /* of links between ranks */
void net_tune(int fd, int64_t lost_ms, bool strict);

/* poll one descriptor for `ms` milliseconds. 1: ready; 0: the time has passed; -1: poll failed (a signal). fd -1
 * only sleeps. */
int net_wait(int fd, short events, int ms);

#endif

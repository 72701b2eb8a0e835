/* proxy.h - a forward proxy for tests: CONNECT or SOCKS5 on a random loopback port. Whatever name it is asked for, it
 * connects to 127.0.0.1: who looks up names shows in what it was asked for.
 *
 * Order: it runs in a thread of its own; every function may be called at any time.
 */
#ifndef TK_TESTS_FAKES_PROXY_H
#define TK_TESTS_FAKES_PROXY_H

#include <stdbool.h>

struct fake_proxy;

struct fake_proxy *fake_proxy_start(bool socks5);
void fake_proxy_stop(struct fake_proxy *p);
int fake_proxy_port(const struct fake_proxy *p);

/* Serve this connected descriptor too, and close it: a socket whose other end someone wraps in TLS. */
void fake_proxy_adopt(struct fake_proxy *p, int fd);

/* Answer every request to connect with 407, until told otherwise. */
void fake_proxy_refuse(struct fake_proxy *p, bool refuse);

/* What was asked so far. */
struct fake_proxy_log {
    int tunnels;      /* asked for */
    char target[300]; /* of the last one, "host:port" */
    char head[2000];  /* CONNECT: request line and headers of the last one */
    char sent[8000];  /* what the client then sent through the last one, as far as it fits */
};
void fake_proxy_look(struct fake_proxy *p, struct fake_proxy_log *ret);

#endif

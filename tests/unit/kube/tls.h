/* tls.h - openssl's own server with throw-away certificates: in the present folder ca, stranger (.crt, .key), server
 * for the name "api.example" and local for 127.0.0.1, both signed by ca. For 127.0.0.1 as well, and
 * each with one thing wrong: expired, self (signed by itself), forged (signed by local, which is no authority),
 * for-clients (what it may be used for).
 */
#ifndef TK_TESTS_UNIT_KUBE_TLS_H
#define TK_TESTS_UNIT_KUBE_TLS_H

#include <stdio.h>
#include <sys/types.h>

/* Group fixtures: a folder for them, made the present one. */
int tls_setup(void **ctx);
int tls_teardown(void **ctx);

struct tls_server {
    pid_t pid;
    FILE *out;
    int port;
};

/* A page for every GET, with <cert>.crt; `extra` are more arguments, ended by NULL. */
struct tls_server tls_serve(const char *cert, const char *const *extra);

void tls_stop(struct tls_server *s);

#endif

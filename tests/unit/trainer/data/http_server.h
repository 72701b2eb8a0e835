/* http_server.h - a server of a test's own that refuses, stalls, cuts off, redirects and never ends.
 *
 * By the beginning of the path: /good, /cut (in the middle), /stall (there), /wrong (another body), /503, /loop, /file,
 * /moved (redirects), /endless; anything else is 404. As a proxy (http_proxy) it answers for any server.
 */
#ifndef TK_TESTS_TRAINER_DATA_HTTP_SERVER_H
#define TK_TESTS_TRAINER_DATA_HTTP_SERVER_H

#include <stdint.h>
#include <sys/types.h>

enum { HTTP_SERVER_BODY = 100000 };

/* What it has seen, in memory that both share. */
struct http_seen {
    int requests;
    char proxied[16]; /* written by the test: the path as which requests to a proxy are answered */
};

struct http_server {
    int port; /* of 127.0.0.1 */
    pid_t pid;
    struct http_seen *seen;
};

void http_server_start(struct http_server *s);
void http_server_stop(struct http_server *s);

/* What it serves: HTTP_SERVER_BODY bytes. */
const uint8_t *http_server_body(void);

#endif

/* fuzz_clients.c - the store's server: what a stranger says changes nothing, and what a client says is answered or ends
 * its connection. Byte 0: whether the right hello goes before the others. */
#include "fuzz.h"

#include "rendezvous/clients.h"

#include <string.h>
#include <sys/socket.h>

enum { TURNS_MAX = 10000, CLIENTS_MAX = 2, SPEAK_MS = 60000 };

/* Read what has been answered, so that the server can go on. */
static size_t drain(int fd)
{
    char bytes[4096];
    size_t all = 0;
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        all += (size_t)n;
    return all;
}

/* The client has said everything and hung up: soon it is gone, unless it waits. */
static void serve(struct clients *s, int fd)
{
    struct pollfd pfds[CLIENTS_MAX];
    int quiet = 0;

    for (int turn = 0; s->n && quiet < 3; turn++) {
        MUST(turn < TURNS_MAX && s->n == 1 && s->n_unknown <= 1);
        int n = clients_poll(s, pfds);
        int ready = poll(pfds, (nfds_t)n, 0);
        MUST(ready >= 0);
        clients_turn(s, pfds, n);
        quiet = drain(fd) || ready ? 0 : quiet + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct clients s;
    int fds[2];

    if (size < 1 || size > 65536)
        return 0;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    clients_init(&s, "job-1", CLIENTS_MAX, SPEAK_MS);
    s.table.max_keys = 8;
    s.table.max_bytes = 256;
    const bool known = data[0] & 1;
    if (known)
        MUST(send(fds[1], s.hello, sizeof(s.hello), 0) == (ssize_t)sizeof(s.hello));
    if (size > 1)
        MUST(send(fds[1], data + 1, size - 1, 0) == (ssize_t)size - 1);
    MUST(shutdown(fds[1], SHUT_WR) == 0 && clients_add(&s, fds[0]));
    serve(&s, fds[1]);
    MUST(s.table.keys <= 8 && s.table.bytes <= 256);
    const bool right_hello =
        size > PROTOCOL_HELLO_BYTES && memcmp(data + 1, s.hello, PROTOCOL_HELLO_BYTES) == 0;
    if (!known && !right_hello)
        MUST(s.n == 0 && s.table.keys == 0 && s.unauthenticated == 1);
    clients_release(&s);
    close(fds[1]);
    return 0;
}

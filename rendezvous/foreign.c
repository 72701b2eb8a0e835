/* foreign.c - identify the server at an address where no leader answered. */
#include "rendezvous/foreign.h"
#include "common/clock.h"
#include "rendezvous/net.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { WORDS_BYTES = 40 };

/* PyTorch's TCPStore (torch/csrc/distributed/c10d/TCPStoreBackend.hpp): VALIDATE with its magic number, PING with a
 * number that comes back. Integers are the machine's. */
static const char PING[] = "\x00\xce\xf7\x85\x3c\x0dTKpi";
static const char PONG[] = "TKpi";
static const char HEAD[] = "HEAD / HTTP/1.0\r\n\r\n";

/* Connect, send a question, and read the first bytes of the answer: returns their number; -1: nothing listens. */
static int ask(struct resolver *at, const char *question, size_t len, int64_t answer_ms,
               char got[static WORDS_BYTES])
{
    const int64_t deadline_ms = clock_mono_ms() + answer_ms;
    cleanup_close int fd = resolver_dial(at, deadline_ms);

    if (fd < 0)
        return -1;
    if (send(fd, question, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
        return 0;
    for (;;) {
        const int64_t left_ms = deadline_ms - clock_mono_ms();
        if (left_ms <= 0)
            return 0;
        if (net_wait(fd, POLLIN, (int)left_ms) <= 0)
            continue;
        ssize_t n = recv(fd, got, WORDS_BYTES, MSG_DONTWAIT);
        return n > 0 ? (int)n : 0;
    }
}

/* The first line of an answer, with dots for what is no ASCII character. */
static void quote(const char *got, int n, char out[static FOREIGN_BYTES])
{
    char text[WORDS_BYTES + 1] = "";

    for (int i = 0; i < n && got[i] != '\r' && got[i] != '\n'; i++)
        text[i] = got[i] >= ' ' && got[i] < 0x7f ? got[i] : '.';
    snprintf(out, FOREIGN_BYTES, "a server answers there with \"%s\"", text);
}

static bool begins(const char *got, int n, const char *with)
{
    return n >= (int)strlen(with) && memcmp(got, with, strlen(with)) == 0;
}

enum foreign foreign_identify(struct resolver *at, int64_t answer_ms, char out[static FOREIGN_BYTES])
{
    char got[WORDS_BYTES];
    int n = ask(at, PING, sizeof(PING) - 1, answer_ms, got);

    if (n == (int)strlen(PONG) && begins(got, n, PONG)) {
        snprintf(out, FOREIGN_BYTES,
                 "a TCPStore of PyTorch answers there; its launchers and this one cannot share a run");
        return FOREIGN_OTHER;
    }
    if (n == 0)
        n = ask(at, HEAD, sizeof(HEAD) - 1, answer_ms, got);
    if (n <= 0) {
        snprintf(out, FOREIGN_BYTES, "%s", n ? "" : "something accepts connections there and says nothing");
        return n ? FOREIGN_NOBODY : FOREIGN_SILENT;
    }
    if (begins(got, n, "HTTP/"))
        snprintf(out, FOREIGN_BYTES, "an HTTP server answers there");
    else
        quote(got, n, out);
    return FOREIGN_OTHER;
}

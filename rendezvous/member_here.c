/* member_here.c - is an address this machine's? Decided by trying to bind to it, which needs no list of interfaces. */
#include "common/cleanup.h"
#include "rendezvous/member.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

bool member_host_is_here(const char *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    bool here = false;

    if (getaddrinfo(host, NULL, &hints, &all) != 0)
        return false;
    for (const struct addrinfo *at = all; at && !here; at = at->ai_next) {
        cleanup_close int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        here = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0; /* port 0: any */
    }
    freeaddrinfo(all);
    return here;
}

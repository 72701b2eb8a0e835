/* evidence_net.c - read from /proc which peer of a process does not answer. */
#include "common/fsutil.h"
#include "launcher/evidence.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* RETRANSMITS: so often in a row the same bytes were sent and not acknowledged, for 1.4 s at least; a packet or two are lost
 * anywhere. The states and the timer are the kernel's. */
enum { RETRANSMITS = 3, LINE_BYTES = 512, ESTABLISHED = 1, TIMER_RETRANSMIT = 1 };

/* "0A00620A" or four such words: each is as the machine has it in memory. */
static bool read_address(const char *hex, char out[static SUSPECT_PEER_BYTES])
{
    const uint32_t mapped[3] = {0, 0, htonl(0xffff)}; /* of IPv4 in IPv6 */
    uint32_t words[4];
    const size_t n = strlen(hex) / 8;

    if (n * 8 != strlen(hex) || (n != 1 && n != 4))
        return false;
    for (size_t i = 0; i < n; i++)
        if (sscanf(hex + i * 8, "%8" SCNx32, &words[i]) != 1)
            return false;
    const bool plain = n == 1 || memcmp(words, mapped, sizeof(mapped)) == 0;
    return inet_ntop(plain ? AF_INET : AF_INET6, &words[plain ? n - 1 : 0], out, SUSPECT_PEER_BYTES) != NULL;
}

/* A line of /proc/PID/net/tcp: "0: local:port remote:port state tx:rx timer:when retransmits uid timeout inode ...". */
static bool read_line(const char *line, struct evidence_connection *ret)
{
    unsigned state, timer, retransmits;
    char remote[33];

    return sscanf(line, " %*d: %*[0-9A-F]:%*x %32[0-9A-F]:%*x %x %*x:%*x %x:%*x %x %*u %*u %" SCNu64, remote,
                  &state, &timer, &retransmits, &ret->inode) == 5 &&
           state == ESTABLISHED && timer == TIMER_RETRANSMIT && retransmits >= RETRANSMITS &&
           read_address(remote, ret->address);
}

/* Of the process's whole network namespace. */
static int read_table(const char *proc, pid_t pid, const char *name, struct evidence_connection *out, int max)
{
    char path[PATH_MAX], line[LINE_BYTES];
    int n = 0;

    snprintf(path, sizeof(path), "%s/%d/net/%s", proc, (int)pid, name);
    cleanup_fclose FILE *f = fopen(path, "re");
    while (f && n < max && fgets(line, sizeof(line), f))
        n += read_line(line, &out[n]);
    return n;
}

struct evidence_net evidence_net_scan(const char *proc, pid_t pid)
{
    struct evidence_net net = {.n = 0};

    net.n = read_table(proc, pid, "tcp", net.connections, EVIDENCE_CONNECTIONS_MAX);
    net.n += read_table(proc, pid, "tcp6", net.connections + net.n, EVIDENCE_CONNECTIONS_MAX - net.n);
    return net;
}

static const char *find(const struct evidence_net *net, uint64_t inode)
{
    for (int i = 0; i < net->n; i++)
        if (net->connections[i].inode == inode)
            return net->connections[i].address;
    return NULL;
}

void evidence_unanswered(const struct evidence_net *net, const char *proc, pid_t pid,
                         char out[static SUSPECT_PEER_BYTES])
{
    char path[PATH_MAX], target[64];
    uint64_t inode;

    out[0] = '\0';
    snprintf(path, sizeof(path), "%s/%d/fd", proc, (int)pid);
    cleanup_closedir DIR *d = net->n ? opendir(path) : NULL;
    for (const struct dirent *e; d && !out[0] && (e = readdir(d));) {
        const ssize_t len = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
        target[len > 0 ? len : 0] = '\0';
        const char *address = sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1 ? find(net, inode) : NULL;
        if (address)
            snprintf(out, SUSPECT_PEER_BYTES, "%s", address);
    }
}

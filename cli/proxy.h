/* proxy.h - `kubectl proxy` as our way to the API server: files, credentials, plug-ins and proxies are kubectl's. Used by
 * session.c only.
 *
 * Ownership: the folder of its socket and the process are gone after kubectl_proxy_end, and the process also when ours is killed.
 * Errors:    ERR_FATAL: kubectl does not start, or ends before it serves; its messages are on stderr then.
 */
#ifndef TK_CLI_PROXY_H
#define TK_CLI_PROXY_H

#include "cli/args.h"
#include "cli/kubectl.h"
#include "cli/socketdir.h"
#include "common/buf.h"

enum { KUBECTL_PROXY_NS_BYTES = 64, KUBECTL_PROXY_KEPT_BYTES = 4 << 10 };

struct kubectl_proxy {
    struct kubectl_child child; /* pid 0: none */
    struct socketdir folder;
    char ns[KUBECTL_PROXY_NS_BYTES]; /* of the context, or of the pod that we are in */
    bool ended;                      /* it closed its stderr */
    struct buf kept;                 /* the last of what it wrote on it */
};

/* Start it, and wait until it serves at folder.socket. */
int kubectl_proxy_start(struct kubectl_proxy *p, const struct args *a, struct err *err) MUST_CHECK;

/* Read what it wrote on its stderr, child.err: for the user at once, or kept for the end. */
void kubectl_proxy_read(struct kubectl_proxy *p, bool keep);

/* End it, and print what was kept. */
void kubectl_proxy_end(struct kubectl_proxy *p);

/* The namespace: the context's, as kubectl printed it, else that of the service account in the folder `account`, else "default". */
void kubectl_proxy_namespace(const char *printed, const char *account,
                             char to[static KUBECTL_PROXY_NS_BYTES]);

#endif

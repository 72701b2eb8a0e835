/* proxy.c - start `kubectl proxy`, wait until it serves, pass its messages on, end it. */
#include "cli/proxy.h"

#include "common/fsutil.h"
#include "common/sv.h"
#include "kube/auth/config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENT_BYTES = SOCKETDIR_PATH_BYTES + 32, ACCOUNT_PATH_BYTES = 256 };

static const char SERVES[] = "Starting to serve";

/* What is read until it serves. A descriptor of -1 has ended. */
enum { OUT, ERRORS, NAMESPACE, SOURCES };
struct start {
    struct pollfd from[SOURCES];
    struct buf ns;
    bool serves;
};

static int end(struct kubectl_proxy *p, int signal_number, bool keep)
{
    const int status = kubectl_end(&p->child, signal_number);

    kubectl_proxy_read(p, keep);
    close(p->child.err);
    return status;
}

/* Any of its output may ask for a password, so none of it waits for the end of its line. */
static void take(struct start *st, int i)
{
    struct err ignored;
    char bytes[4096];
    const ssize_t n = read(st->from[i].fd, bytes, sizeof(bytes));

    if (n <= 0) {
        st->from[i].fd = -1;
        return;
    }
    if (i == NAMESPACE)
        (void)buf_append(&st->ns, bytes, (size_t)n, &ignored);
    else if (i == OUT && memmem(bytes, (size_t)n, SERVES, sizeof(SERVES) - 1))
        st->serves = true;
    else
        (void)fs_write_all(STDERR_FILENO, bytes, (size_t)n);
}

static int ended_early(struct kubectl_proxy *p, struct err *err)
{
    const int status = end(p, 0, false);
    const bool exited = WIFEXITED(status);
    const int code = exited ? WEXITSTATUS(status) : WTERMSIG(status);

    return err_set(err, ERR_FATAL, "no connection: kubectl ended with %s %d before it served",
                   exited ? "exit status" : "signal", code);
}

static int await(struct kubectl_proxy *p, struct start *st, struct err *err)
{
    while (!st->serves || st->from[NAMESPACE].fd >= 0) {
        if (!st->serves && st->from[OUT].fd < 0)
            return ended_early(p, err);
        if (poll(st->from, SOURCES, -1) < 0 && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "kubectl: poll");
        for (int i = 0; i < SOURCES; i++)
            if (st->from[i].fd >= 0 && st->from[i].revents)
                take(st, i);
    }
    return 0;
}

static int start_both(struct kubectl_proxy *p, const struct args *a, struct kubectl_child *view,
                      struct err *err)
{
    static const char *const VIEW[] = {
        "config", "view", "--minify", "-o", "jsonpath={.contexts[*].context.namespace}", NULL};
    char at[ARGUMENT_BYTES];

    snprintf(at, sizeof(at), "--unix-socket=%s", p->folder.socket);
    if (kubectl_start(a,
                      (const char *const[]){"proxy", "--append-server-path", "--reject-paths=^$", at, NULL},
                      &p->child, err) < 0)
        return -1;
    (void)fcntl(p->child.err, F_SETFL, O_NONBLOCK);
    return args_text(a, "namespace", NULL) ? 0 : kubectl_start(a, VIEW, view, err);
}

int kubectl_proxy_start(struct kubectl_proxy *p, const struct args *a, struct err *err)
{
    struct kubectl_child view = {0};

    *p = (struct kubectl_proxy){.kept = BUF_INIT(KUBECTL_PROXY_KEPT_BYTES)};
    if (socketdir_make(&p->folder, err) < 0)
        return -1;
    int rc = start_both(p, a, &view, err);
    if (rc == 0) {
        struct start st = {.from = {{.fd = p->child.out, .events = POLLIN},
                                    {.fd = p->child.err, .events = POLLIN},
                                    {.fd = view.pid ? view.out : -1, .events = POLLIN}},
                           .ns = BUF_INIT(KUBECTL_PROXY_NS_BYTES)};
        rc = await(p, &st, err);
        kubectl_proxy_namespace(buf_str(&st.ns), KUBE_SERVICE_ACCOUNT_DIR, p->ns);
        buf_release(&st.ns);
    }
    if (view.pid) {
        (void)kubectl_end(&view, SIGKILL);
        close(view.err); /* not shown: `kubectl proxy` has the same messages */
    }
    return rc;
}

void kubectl_proxy_read(struct kubectl_proxy *p, bool keep)
{
    struct err ignored;
    char bytes[KUBECTL_PROXY_KEPT_BYTES / 2];
    ssize_t n;

    while ((n = read(p->child.err, bytes, sizeof(bytes))) > 0) {
        if (!keep) {
            (void)fs_write_all(STDERR_FILENO, bytes, (size_t)n);
            continue;
        }
        while (p->kept.len + (size_t)n > p->kept.max) { /* whole lines of the oldest go */
            const char *end = memchr(p->kept.data, '\n', p->kept.len);
            buf_consume(&p->kept, end ? (size_t)(end + 1 - p->kept.data) : p->kept.len);
        }
        (void)buf_append(&p->kept, bytes, (size_t)n, &ignored);
    }
    p->ended = n == 0;
}

void kubectl_proxy_end(struct kubectl_proxy *p)
{
    if (p->child.pid)
        (void)end(p, SIGKILL, true);
    fflush(stdout);
    if (p->kept.len)
        (void)fs_write_all(STDERR_FILENO, p->kept.data, p->kept.len);
    buf_release(&p->kept);
    socketdir_remove(&p->folder);
    *p = (struct kubectl_proxy){0};
}

void kubectl_proxy_namespace(const char *printed, const char *account, char to[static KUBECTL_PROXY_NS_BYTES])
{
    cleanup_buf struct buf file = BUF_INIT(KUBECTL_PROXY_NS_BYTES);
    char path[ACCOUNT_PATH_BYTES];
    struct err none;
    struct sv ns = sv_trim(sv_from(printed));

    snprintf(path, sizeof(path), "%s/namespace", account);
    if (!ns.len && getenv("KUBERNETES_SERVICE_HOST") && fs_read(path, &file, &none) == 0)
        ns = sv_trim((struct sv){buf_str(&file), file.len});
    snprintf(to, KUBECTL_PROXY_NS_BYTES, "%.*s", ns.len ? (int)ns.len : 7, ns.len ? ns.p : "default");
}

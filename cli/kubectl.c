/* kubectl.c - run kubectl with the same connection. */
#include "cli/kubectl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { WORDS_MAX = 1024 };

int kubectl_become(const struct session *s, const struct args *a, const char *const *words, struct err *err)
{
    static const char *const SHARED[] = {"kubeconfig", "context"};
    const char *argv[WORDS_MAX + 8] = {"kubectl"};
    int n = 1;

    for (size_t i = 0; i < sizeof(SHARED) / sizeof(SHARED[0]); i++) {
        static const char *const OPTIONS[] = {"--kubeconfig", "--context"};
        const char *value = args_text(a, SHARED[i], NULL);
        if (value) {
            argv[n++] = OPTIONS[i];
            argv[n++] = value;
        }
    }
    argv[n++] = "--namespace";
    argv[n++] = s->ns;
    for (int i = 0; words[i]; i++) {
        if (n == WORDS_MAX + 7)
            return err_set(err, ERR_INVALID, "more than %d words for kubectl", WORDS_MAX);
        argv[n++] = words[i];
    }
    fflush(NULL);
    signal(SIGPIPE, SIG_DFL); /* main ignores it */
    execvp("kubectl", (char *const *)(uintptr_t)argv);
    return err_errno(err, ERR_FATAL, errno, "kubectl, which this needs");
}

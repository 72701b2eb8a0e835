/* kubectl.c - start kubectl with the options of the connection, or become it. */
#include "cli/kubectl.h"

#include "cli/shown.h"
#include "common/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program(void)
{
    const char *given = getenv("KUBECTL");

    return given && *given ? given : "kubectl";
}

static bool is_kubectls(const struct option_row *o)
{
    for (const struct option_row *k = VERB_KUBECTL_OPTIONS; k->name; k++)
        if (k == o)
            return true;
    return false;
}

static char *option_word(const struct option_row *o, const char *value, struct arena *arena)
{
    return arena_printf(arena, "--%s%s%s", o->name, !o->optional || *value ? "=" : "", value);
}

/* kubectl, the options of the connection, --namespace (NULL: none), the words. */
static char **argv_of(const struct args *a, const char *ns, const char *const *words, struct arena *arena)
{
    size_t n_words = 0, n = 0;

    while (words[n_words])
        n_words++;
    char **argv = arena_array(arena, n_words + ARGS_OPTIONS_MAX + 4, char *);
    argv[n++] = arena_strdup(arena, program());
    for (int i = 0; i < a->n_set; i++)
        if (is_kubectls(a->set[i].row))
            argv[n++] = option_word(a->set[i].row, a->set[i].value, arena);
    if (ns) {
        argv[n++] = arena_strdup(arena, "--namespace");
        argv[n++] = arena_strdup(arena, ns);
    }
    for (size_t i = 0; i < n_words; i++)
        argv[n++] = arena_strdup(arena, words[i]);
    return argv;
}

static bool is_secret(const struct option_row *o, const char *value)
{
    return strcmp(o->name, "token") == 0 || strcmp(o->name, "password") == 0 ||
           (strcmp(o->name, "server") == 0 && strchr(value, '@'));
}

void kubectl_options(const struct args *a, struct buf *out)
{
    cleanup_arena struct arena arena = {0};

    for (int i = 0; i < a->n_set; i++) {
        const struct option_row *o = a->set[i].row;
        if (!is_kubectls(o))
            continue;
        buf_puts(out, " ", NULL);
        shown_word(out, option_word(o, is_secret(o, a->set[i].value) ? "..." : a->set[i].value, &arena));
    }
}

static int not_run(char *const *argv, int why, struct err *err)
{
    return err_set(err, ERR_FATAL, "%.200s, which this needs: %s ($KUBECTL or $PATH)", argv[0],
                   strerror(why));
}

/* In our memory, as vfork has it: *why, if it becomes no kubectl. */
static void run_child(char **argv, const int out[2], const int err[2], pid_t parent, volatile int *why)
{
    /* Not SIGTERM, which waits for the end of a Ctrl-Z. What it leaves behind, its socket, is removed by us. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && dup2(out[1], STDOUT_FILENO) >= 0 &&
        dup2(err[1], STDERR_FILENO) >= 0) {
        signal(SIGPIPE, SIG_DFL); /* main ignores it */
        execvp(argv[0], argv);
    }
    *why = errno;
    _exit(126);
}

int kubectl_start(const struct args *a, const char *const *words, struct kubectl_child *ret, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    char **argv = argv_of(a, NULL, words, &arena);
    const pid_t parent = getpid();
    int out[2] = {-1, -1}, errors[2];
    volatile int why = 0;

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0) {
        err_errno(err, ERR_FATAL, errno, "kubectl: pipe");
        close(out[0]);
        close(out[1]);
        return -1;
    }
    fflush(NULL);
    *ret = (struct kubectl_child){.pid = vfork(), .out = out[0], .err = errors[0]};
    if (ret->pid == 0)
        run_child(argv, out, errors, parent, &why);
    if (ret->pid < 0)
        why = errno;
    close(out[1]);
    close(errors[1]);
    if (!why)
        return 0;
    (void)kubectl_end(ret, 0);
    close(errors[0]);
    return not_run(argv, why, err);
}

int kubectl_end(struct kubectl_child *c, int signal_number)
{
    int status = 0;

    if (c->pid > 0)
        kill(c->pid, signal_number);
    while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    close(c->out);
    c->pid = 0;
    return status;
}

int kubectl_become(const struct args *a, const char *ns, const char *const *words, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    char **argv = argv_of(a, ns, words, &arena);

    fflush(NULL);
    signal(SIGPIPE, SIG_DFL); /* main ignores it */
    execvp(argv[0], argv);
    return not_run(argv, errno, err);
}

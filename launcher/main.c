/* main.c - torchrun; called as `launch` it is torch.distributed.launch. */
#include "common/contract.h"
#include "common/fsutil.h"
#include "host/cpus.h"
#include "host/gpus.h"
#include "launcher/agent.h"
#include "launcher/exit.h"
#include "launcher/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Handle --help, --version, --print-completion and --install-to. */
static int answer(const struct options *o, const char *argv0)
{
    struct err err = {0};

    if (o->help) {
        options_print_help(options_is_launch(argv0));
    } else if (o->completion) {
        options_print_completion(o->completion, options_is_launch(argv0));
    } else if (o->version) {
        printf("torchrun (Torchkeeper) %s\n", TK_VERSION);
    } else if (program_install("/proc/self/exe", o->install_to, &err) < 0) {
        fprintf(stderr, "torchrun: --install-to: %s\n", err.msg);
        return err.code == ENOSPC ? EXIT_CODE_RETRYABLE
                                  : exit_error_code(&err); /* another node may have disk space */
    }
    return EXIT_CODE_OK;
}

/* Keep ignoring signals that were ignored at exec (nohup, a shell's background job), unless
 * --signals-to-handle names them. */
static void keep_ignored(struct options *o)
{
    struct sigaction now;

    sigemptyset(&o->ignored);
    for (int s = 1; s < NSIG && !o->signals_named; s++)
        if (sigismember(&o->signals, s) == 1 && sigaction(s, NULL, &now) == 0 && now.sa_handler == SIG_IGN) {
            sigdelset(&o->signals, s);
            sigaddset(&o->ignored, s);
        }
}

static int run(int argc, char **argv, struct arena *a)
{
    const struct options_host host = {.get = getenv,
                                      .cpus = cpus_usable(),
                                      .gpus =
                                          gpus_visible(getenv("CUDA_VISIBLE_DEVICES"), gpus_devices("/dev")),
                                      .wants_python = program_wants_python};
    struct options options;
    struct err err = {0};
    sigset_t block;
    char *secret;

    if (options_parse(argc, argv, &host, a, &options, &err) < 0) {
        fprintf(stderr, "%s: %s\n", options_is_launch(argv[0]) ? "launch" : "torchrun", err.msg);
        return EXIT_CODE_USAGE;
    }
    if ((secret = getenv(CONTRACT_ENV_JOB_KEY))) /* other processes of this user can read /proc/PID/environ */
        explicit_bzero(secret, strlen(secret));
    for (int i = 0; i < options.warnings; i++)
        fprintf(stderr, "torchrun: warning: %s\n", options.warning[i]);
    if (options.help || options.completion || options.version || options.install_to)
        return answer(&options, argv[0]);
    keep_ignored(&options);
    block = options.signals;
    sigaddset(&block, SIGCHLD);
    sigprocmask(SIG_BLOCK, &block, NULL);
    signal(SIGCHLD, SIG_DFL); /* with an inherited SIG_IGN, waitpid would find no exited children */
    signal(SIGPIPE, SIG_IGN);
    return agent_run(&options, environ);
}

int main(int argc, char **argv)
{
    struct arena a = {0};

    fs_fill_standard();
    const int status = run(argc, argv, &a);

    arena_release(&a);
    return status;
}

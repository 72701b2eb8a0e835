/* main.c - kubectl-ptj: parse the command line, open the connection, run the verb. */
#include "cli/help.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/usage.h"

#include "common/fsutil.h"
#include "common/hash.h"
#include "common/json.h"
#include "operator/api/decode.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* Output that cannot be written is a failure: what reads it must not take half of it for the whole. */
static int flushed(int status)
{
    if (status == VERB_SIGPIPE)
        return status;
    if (fflush(stdout) == 0) {
        if (!ferror(stdout))
            return status;
        /* stdio keeps that a write failed, not why. The output is incomplete; one more byte shows the reason. */
        errno = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    }
    if (errno == EPIPE)
        return VERB_SIGPIPE;
    perror("kubectl ptj: stdout");
    return status ? status : 1;
}

static int check(const struct args *a, struct err *err)
{
    const char *ns = a->verb->offline ? NULL : args_text(a, "namespace", NULL);

    if (ns && !decode_is_dns_label(ns, DECODE_LABEL_BYTES, false))
        return usage_wrong(err, "--namespace: expected a-z, 0-9 and -, got \"%.80s\"", ns);
    return a->verb->check ? a->verb->check(a, err) : 0;
}

static int run(const struct args *a, struct err *err)
{
    cleanup_session struct session s = {0};

    if (check(a, err) < 0)
        return -1;
    if (a->verb->offline || (a->verb->offline_with && args_has(a, a->verb->offline_with)))
        return a->verb->run(NULL, a, err);
    return session_open(&s, a, err) < 0 ? -1 : a->verb->run(&s, a, err);
}

int main(int argc, char **argv)
{
    cleanup_args struct args a = {0};
    char who[64];
    uint64_t seed[2] = {0};
    struct err err;
    int status;

    json_memory_must();
    fs_fill_standard();
    (void)!getrandom(seed, sizeof(seed), 0);
    hash_seed(seed);
    signal(SIGPIPE, SIG_IGN);
    if (args_parse(&a, argc, argv, &err) < 0) {
        say("kubectl ptj", "%s", err.msg);
        return 2;
    }
    if (a.version)
        puts("kubectl-ptj (Torchkeeper) " CLI_VERSION);
    else if (a.help)
        help_print(stdout, a.verb);
    else if (!a.verb)
        help_print(stderr, NULL);
    if (a.version || a.help || !a.verb)
        return flushed(a.verb || a.help || a.version ? 0 : 2);
    status = run(&a, &err);
    if (status < 0) {
        fflush(stdout);
        snprintf(who, sizeof(who), "kubectl ptj %s", a.verb->name);
        say(who, "%s", err.msg);
        status = usage_is_wrong(&err) ? 2 : 1;
    }
    return flushed(status);
}

/* completion.c - kubectl ptj completion: print the scripts that let bash, zsh and fish complete its words, and kubectl with them. And
 * kubectl ptj __complete: what the word under the cursor can become, for those scripts and for kubectl, which calls
 * kubectl_complete-ptj.
 *
 * __complete prints a line per word, with a tab and an explanation, and then a directive of kubectl's: ":4" for nothing else, ":0"
 * for names of files.
 */
#include "cli/jobfeed.h"
#include "cli/texts.h"
#include "cli/usage.h"

#include "common/json.h"
#include "common/memory.h"
#include "operator/api/decode.h"
#include "operator/api/jobstatus.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_S = 2, PATIENCE_MAX_S = 600 };

static const char ONLY_THESE[] = ":4\n", FILES_TOO[] = ":0\n";

struct completion {
    struct args before; /* the words before the one to complete */
    const char *word;   /* the beginning of it */
    const char *option; /* in front of the word, with '=': it is printed with each; "" */
    struct session *session;
};

static void offer(const struct completion *c, const char *word, const char *about)
{
    if (!strncmp(word, c->word, strlen(c->word)))
        printf("%s%s\t%s\n", c->option, word, about);
}

static void offer_options(const struct completion *c, const struct option_row *options)
{
    char word[64];

    for (const struct option_row *o = options; o && o->name; o++) {
        snprintf(word, sizeof(word), "--%s", o->name);
        offer(c, word, o->help ? o->help : "as for kubectl");
    }
}

/* Whatever takes longer, a name server, a proxy, a program for credentials: the shell does not wait for it. */
static void on_alarm(int signal)
{
    ssize_t ignored = write(STDOUT_FILENO, ONLY_THESE, sizeof(ONLY_THESE) - 1);

    (void)signal, (void)ignored;
    socketdir_leave();
    _exit(0);
}

static unsigned patience_s(void)
{
    const char *text = getenv("PTJ_COMPLETION_SECONDS");
    int64_t s = PATIENCE_S;

    if (text && !sv_i64(sv_from(text), 1, PATIENCE_MAX_S, &s))
        s = PATIENCE_S;
    return (unsigned)s;
}

static void on_job(void *ctx, const cJSON *job)
{
    const char *name = json_meta(job, "name");

    if (name && decode_is_dns_label(name, DECODE_NAME_BYTES, false))
        offer(ctx, name, job_phase_name(job_phase_of(json_child(job, "status"))));
}

static void on_list_end(void *ctx)
{
    const struct completion *c = ctx;

    kube_loop_stop(c->session->loop);
}

static void on_failed(void *ctx, const struct err *err)
{
    (void)err;
    on_list_end(ctx);
}

static void offer_jobs(struct completion *c)
{
    cleanup_session struct session s = {0};
    struct err err;

    /* So a credential plug-in cannot prompt. */
    if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "r", stdin))
        return;
    signal(SIGALRM, on_alarm);
    alarm(patience_s());
    if (session_open(&s, &c->before, &err) < 0)
        return;
    c->session = &s;
    struct jobfeed *f =
        jobfeed_new(&(struct jobfeed_options){.session = &s,
                                              .ns = s.ns,
                                              .jobs = {.list_end = on_list_end, .object = on_job},
                                              .failed = on_failed,
                                              .ctx = c});
    const int ran = kube_loop_run(s.loop, &err); /* what came is printed */
    (void)ran;
    jobfeed_free(f);
    alarm(0);
}

/* What may stand there, as in struct option_row. Whether files may. */
static bool offer_kind(struct completion *c, const char *const *words)
{
    if (words == VERB_JOBS)
        offer_jobs(c);
    for (; words && *words; words++)
        offer(c, *words, "");
    return words == VERB_FILES;
}

/* Its value, in the next word or behind '='. */
static bool has_value(const struct option_row *o, bool next)
{
    return o && o->value && !(next && o->optional);
}

static bool complete(struct completion *c, const char *last)
{
    const struct verb *v = c->before.verb;
    const struct option_row *waiting = last ? args_option(v, last) : NULL;
    const char *equals = strchr(c->word, '=');
    static char option[80];

    if (has_value(waiting, true))
        return offer_kind(c, waiting->words);
    if (c->word[0] == '-' && equals) {
        snprintf(option, sizeof(option), "%.*s", (int)(equals - c->word), c->word);
        waiting = args_option(v, option);
        snprintf(option, sizeof(option), "%.*s", (int)(equals + 1 - c->word), c->word);
        c->option = option;
        c->word = equals + 1;
        return has_value(waiting, false) && offer_kind(c, waiting->words);
    }
    if (c->word[0] == '-') {
        const struct option_row *lists[OPTIONS_LISTS];
        verb_options(v, lists);
        for (int i = 0; i < OPTIONS_LISTS; i++)
            offer_options(c, lists[i]);
        return false;
    }
    for (int i = 0; !v && VERBS[i]; i++)
        if (!VERBS[i]->hidden)
            offer(c, VERBS[i]->name, VERBS[i]->summary);
    return v && c->before.n_operands < v->operands_max && offer_kind(c, v->words);
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    const int n = a->n_operands;
    struct completion c = {.word = n ? a->operands[n - 1] : "", .option = ""};
    char **words = memory_must(calloc((size_t)n + 2, sizeof(*words)));
    struct err ignored;

    (void)s, (void)err;
    for (int i = 0; i < n - 1; i++)
        words[i + 1] = (char *)(uintptr_t)a->operands[i];
    /* Half a command line is wrong in most cases; as much of it as was right is known then. */
    const int parsed = args_parse(&c.before, n > 0 ? n : 1, words, &ignored);
    (void)parsed;
    fputs(complete(&c, n > 1 ? a->operands[n - 2] : NULL) ? FILES_TOO : ONLY_THESE, stdout);
    args_release(&c.before);
    free(words);
    return 0;
}

const struct verb VERB_COMPLETE = {
    .name = "__complete",
    .operands = "-- [WORD...]",
    .operands_max = VERB_ANY,
    .summary = "what the last word can become",
    .about = "For the scripts of `kubectl ptj completion`, and for kubectl.",
    .offline = true,
    .hidden = true,
    .run = run,
};

/* ---- the scripts */

static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};

static int print_script(struct session *s, const struct args *a, struct err *err)
{
    static const char *const SCRIPTS[] = {completion_bash, completion_zsh, completion_fish};
    const char *shell = a->operands[0];

    (void)s;
    for (int i = 0; SHELLS[i]; i++)
        if (!strcmp(shell, SHELLS[i])) {
            fputs(SCRIPTS[i], stdout);
            return 0;
        }
    return usage_wrong(err, "expected bash, zsh or fish, got \"%.40s\"", shell);
}

static const struct option_example EXAMPLES[] = {
    {"source <(kubectl ptj completion bash)", "In ~/.bashrc."},
    {"source <(kubectl ptj completion zsh)", "In ~/.zshrc, behind compinit."},
    {"kubectl ptj completion fish > ~/.config/fish/completions/kubectl-ptj.fish", "Once."},
    {0},
};

const struct verb VERB_COMPLETION = {
    .name = "completion",
    .operands = "SHELL",
    .operands_min = 1,
    .operands_max = 1,
    .words = SHELLS,
    .summary = "print the completion script for bash, zsh or fish",
    .about = completion_txt,
    .examples = EXAMPLES,
    .offline = true,
    .run = print_script,
};

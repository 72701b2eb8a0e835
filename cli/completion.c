/* completion.c - kubectl ptj completion: print the scripts that let bash, zsh and fish complete its words, and kubectl with them. */
#include "cli/args.h"
#include "cli/texts.h"
#include "cli/usage.h"

#include <stdio.h>
#include <string.h>

static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};

static int run(struct session *s, const struct args *a, struct err *err)
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
    .run = run,
};

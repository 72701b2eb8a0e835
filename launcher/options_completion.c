/* options_completion.c - print the shell completion scripts from the option table. */
#include "launcher/options.h"

#include <stdio.h>
#include <string.h>

const char *const options_shells[] = {"bash", "zsh", "tcsh", NULL};

/* Print every long option, each after `before`. */
static void print_names(const char *before)
{
    for (int i = 0; i < N_OPTIONS; i++)
        printf("%s%s%s", i ? " " : "", before, option_rows[i].name);
}

void options_print_completion(const char *shell, bool launch)
{
    const char *name = launch ? "launch" : "torchrun";

    if (strcmp(shell, "bash") == 0) {
        printf("# In ~/.bashrc: source <(%s --print-completion bash)\n", name);
        printf("complete -o default -W '");
        print_names("--");
        printf("' %s\n", name);
    } else if (strcmp(shell, "zsh") == 0) {
        printf("#compdef %s\n# In a folder of $fpath, as _%s.\n", name, name);
        printf("if [[ $PREFIX == -* ]]; then\n    compadd -- ");
        print_names("--");
        printf("\nelse\n    _files\nfi\n");
    } else {
        printf("# In ~/.tcshrc.complete\n");
        printf("complete %s 'c/--/(", name);
        print_names("");
        printf(")/' 'p/*/f/'\n");
    }
}

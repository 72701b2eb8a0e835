/* completion.c - kubectl ptj completion: the scripts that let bash, zsh and fish complete its words, and kubectl with them. */
#include "cli/args.h"
#include "cli/usage.h"

#include <stdio.h>
#include <string.h>

/* bash cuts a word at '=' into three. They are put together for the program, and of its answer what is behind the '=' is the
 * part that bash replaces. */
static const char BASH[] =
    "# bash completion of kubectl-ptj\n"
    "_kubectl_ptj() {\n"
    "    local words=() i word answer directive cut=\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ ${#words[@]} -gt 0 && ($word == '=' || ${COMP_WORDS[i - 1]} == '=') ]]; then\n"
    "            words[${#words[@]} - 1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    answer=$(kubectl-ptj __complete -- \"${words[@]}\" 2>/dev/null)\n"
    "    directive=${answer##*:}\n"
    "    word=${words[${#words[@]} - 1]}\n"
    "    [[ $word == --*=* ]] && cut=${word%%=*}=\n"
    "    COMPREPLY=()\n"
    "    if [[ $directive == 0 ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r i; do\n"
    "            COMPREPLY+=(\"$i\")\n"
    "        done < <(compgen -f -- \"${word#\"$cut\"}\")\n"
    "        return\n"
    "    fi\n"
    "    while IFS= read -r i; do\n"
    "        i=${i%%$'\\t'*}\n"
    "        [[ $i == :* || -z $i ]] || COMPREPLY+=(\"${i#\"$cut\"}\")\n"
    "    done <<<\"$answer\"\n"
    "}\n"
    "complete -F _kubectl_ptj kubectl-ptj\n";

static const char ZSH[] =
    "#compdef kubectl-ptj\n"
    "# zsh completion of kubectl-ptj\n"
    "_kubectl_ptj() {\n"
    "    local -a lines described\n"
    "    local line directive\n"
    "    lines=(\"${(@f)$(kubectl-ptj __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    directive=${lines[-1]}\n"
    "    if [[ $directive == :0 ]]; then\n"
    "        [[ $words[CURRENT] == --*=* ]] && compset -P '*='\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    for line in \"${(@)lines[1,-2]}\"; do\n"
    "        described+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    _describe 'kubectl ptj' described\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    "    _kubectl_ptj \"$@\"\n"
    "elif (( $+functions[compdef] )); then\n"
    "    compdef _kubectl_ptj kubectl-ptj\n"
    "fi\n";

static const char FISH[] =
    "# fish completion of kubectl-ptj\n"
    "function __kubectl_ptj\n"
    "    set -l before (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    set -l answer (kubectl-ptj __complete -- $before[2..] \"$word\" 2>/dev/null)\n"
    "    if test \"$answer[-1]\" = :0\n"
    "        set -l cut (string match -r -- '^--[^=]*=' \"$word\")\n"
    "        printf '%s\\n' \"$cut\"(__fish_complete_path (string replace -- \"$cut\" '' \"$word\"))\n"
    "    else\n"
    "        string match -v -- ':*' $answer\n"
    "    end\n"
    "end\n"
    "complete -c kubectl-ptj -f -a '(__kubectl_ptj)'\n";

static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};

static int run(struct session *s, const struct args *a, struct err *err)
{
    static const char *const SCRIPTS[] = {BASH, ZSH, FISH};
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
    .summary = "print the script that completes kubectl-ptj in bash, zsh or fish",
    .about = "For bash: `source <(kubectl ptj completion bash)` in ~/.bashrc. For zsh: the same with zsh "
             "behind compinit in ~/.zshrc, or the output as _kubectl-ptj in a folder of $fpath. For fish: "
             "the output as kubectl-ptj.fish in ~/.config/fish/completions.\n"
             "`kubectl ptj` itself is completed by kubectl's own completion, which calls the program "
             "kubectl_complete-ptj; `make install` puts it beside kubectl-ptj.\n"
             "Completion reads names of jobs from the API server, for PTJ_COMPLETION_SECONDS at most "
             "(default: 2).",
    .examples = EXAMPLES,
    .offline = true,
    .run = run,
};

#compdef kubectl-ptj
# zsh completion of kubectl-ptj
_kubectl_ptj() {
    local -a lines described
    local line directive
    lines=("${(@f)$(kubectl-ptj __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    directive=${lines[-1]}
    if [[ $directive == :0 ]]; then
        [[ $words[CURRENT] == --*=* ]] && compset -P '*='
        _files
        return
    fi
    for line in "${(@)lines[1,-2]}"; do
        described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe 'kubectl ptj' described
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _kubectl_ptj "$@"
elif (( $+functions[compdef] )); then
    compdef _kubectl_ptj kubectl-ptj
fi

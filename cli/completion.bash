# bash completion of kubectl-ptj
# bash cuts a word at '=' into three. They are put together for the program, and of its answer what is behind the '=' is the part
# that bash replaces.
_kubectl_ptj() {
    local words=() i word answer directive cut=
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ($word == '=' || ${COMP_WORDS[i - 1]} == '=') ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
    done
    answer=$(kubectl-ptj __complete -- "${words[@]}" 2>/dev/null)
    directive=${answer##*:}
    word=${words[${#words[@]} - 1]}
    [[ $word == --*=* ]] && cut=${word%%=*}=
    COMPREPLY=()
    if [[ $directive == 0 ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r i; do
            COMPREPLY+=("$i")
        done < <(compgen -f -- "${word#"$cut"}")
        return
    fi
    while IFS= read -r i; do
        i=${i%%$'\t'*}
        [[ $i == :* || -z $i ]] || COMPREPLY+=("${i#"$cut"}")
    done <<<"$answer"
}
complete -F _kubectl_ptj kubectl-ptj

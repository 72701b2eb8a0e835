# fish completion of kubectl-ptj
function __kubectl_ptj
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -l answer (kubectl-ptj __complete -- $before[2..] "$word" 2>/dev/null)
    if test "$answer[-1]" = :0
        set -l cut (string match -r -- '^--[^=]*=' "$word")
        printf '%s\n' "$cut"(__fish_complete_path (string replace -- "$cut" '' "$word"))
    else
        string match -v -- ':*' $answer
    end
end
complete -c kubectl-ptj -f -a '(__kubectl_ptj)'

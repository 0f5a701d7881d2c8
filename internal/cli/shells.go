package cli

// Shells lists the shells that have a completion script.
var Shells = []string{"bash", "zsh", "fish"}

// CompletionScripts has the completion script of each shell. The scripts call
// runner __complete.
var CompletionScripts = map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}

const bashScript = `# bash completion for runner; source <(runner completion bash)
_runner() {
    local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^=:]/} head= words word
    IFS=$' \t\n' read -r -d '' -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]}-1]}
    # readline replaces only what follows the last = or :
    [[ -n $breaks ]] && head=${word%"${word##*[$breaks]}"}
    COMPREPLY=()
    while IFS= read -r word; do
        word=${word%%$'\t'*}
        # no word: the names come from the database, and no file fits
        [[ -n $word ]] || { compopt +o default 2>/dev/null; continue; }
        COMPREPLY+=("${word#"$head"}")
    done < <("${words[0]/#\~\//$HOME/}" __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _runner runner
`

const zshScript = `#compdef runner
# zsh completion for runner; source <(runner completion zsh)
_runner() {
    local line
    local -a lines suggestions
    lines=("${(@f)$(${(Q)words[1]} __complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    for line in $lines; do
        [[ $line == $'\t'* ]] && return 1
        suggestions+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#suggestions )); then
        _describe -V 'runner' suggestions
    else
        _files
    fi
}
if [[ $funcstack[1] == _runner ]]; then
    _runner "$@"
else
    compdef _runner runner
fi
`

const fishScript = `# fish completion for runner; runner completion fish | source
function __runner_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l suggestions ($words[1] __complete -- $words[2..-1] "$word" 2>/dev/null)
    if test (count $suggestions) -gt 0
        string match -rv -- '^\t' $suggestions
    else
        __fish_complete_path "$word"
    end
end
complete -c runner -k -f -a '(__runner_complete)'
`

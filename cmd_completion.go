package main

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
)

var completionScripts = map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript, "powershell": powershellScript}

func completionCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "bash, zsh, fish or powershell", UsageText: "runner completion bash|zsh|fish|powershell",
		Description: `Prints a script that lets a shell complete commands, options, states, queues,
jobs, workers and recent task ids.

  bash        in ~/.bashrc:   source <(runner completion bash)
  zsh         in ~/.zshrc:    source <(runner completion zsh)   (after compinit)
  fish        in config.fish: runner completion fish | source
  powershell  in $PROFILE:
              runner completion powershell | Out-String | Invoke-Expression

EXIT STATUS
  0  the script is on stdout
  2  usage`,
		Action: func(c *cli.Context) error {
			script, ok := completionScripts[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return failure.Usage("completion needs a shell: %s", strings.Join(cli.Shells, ", "))
			}
			a.Printer.Print(script)
			return nil
		},
	}
}

// completeCommand is the command that the completion scripts call. Its arguments after -- are the words after "runner" up to the cursor.
// It prints one suggestion per line, followed by a tab and a description.
func completeCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, Usage: "what the scripts of completion ask", UsageText: "runner __complete [--new] -- WORD...",
		Flags: []cli.Flag{cli.BoolOption("new", "the cursor stands behind the last word: some shells lose an empty one")},
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if cli.Get[bool](c, "new") || len(words) == 0 {
				words = append(words, "")
			}
			for _, s := range a.Complete(c.Context, words) {
				if s.Word == shellescape.Quote(s.Word) { // only words that need no quoting: the scripts insert them unchanged
					a.Printer.Print(s.Word + "\t" + humanize.Safe(s.About) + "\n")
				}
			}
			return nil
		},
	}
}

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
        printf '%s\n' $suggestions
    else
        __fish_complete_path "$word"
    end
end
complete -c runner -k -f -a '(__runner_complete)'
`

const powershellScript = `# PowerShell completion for runner; runner completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName runner -ScriptBlock {
    param($word, $ast, $cursor)
    $words = @($ast.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -le $cursor } | ForEach-Object { $_.ToString() })
    $new = if ($word -eq '') { @('--new') } else { @() }
    & $ast.CommandElements[0].ToString() __complete @new -- @words 2>$null | ForEach-Object {
        $name, $about = $_ -split [char]9, 2
        if (-not $about) { $about = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
`

package main

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
)

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
			script, ok := cli.CompletionScripts[c.Args().First()]
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

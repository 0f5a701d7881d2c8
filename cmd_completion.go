package main

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
)

func completionCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Usage: "print the completion script of a shell", UsageText: "runner completion bash|zsh|fish",
		Description: `EXAMPLES
  source <(runner completion bash)     # bash: in ~/.bashrc
  source <(runner completion zsh)      # zsh: in ~/.zshrc, after compinit
  runner completion fish | source      # fish: in config.fish

completion prints a script for a shell. With it the shell completes commands,
options, states, queues, schedules and recent task ids.`,
		Action: func(c *cli.Context) error {
			script, ok := cli.CompletionScripts[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return ui.Usage("completion needs a shell; use one of %s", strings.Join(cli.Shells, ", "))
			}
			a.Printer.Print(script)
			return nil
		},
	}
}

// completeCommand is what the completion scripts call. Its arguments are -- and
// the words up to the cursor, without runner itself. It prints a line for each
// suggestion: the word, a tab and a description.
func completeCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Hidden: true, Usage: "print suggestions for the completion scripts",
		UsageText: "runner __complete -- WORD...",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				words = []string{""}
			}
			for _, s := range a.Complete(c.Context, words) {
				if s.Word == "" || s.Word == shellescape.Quote(s.Word) { // the scripts quote nothing
					a.Printer.Print(s.Word + "\t" + humanize.Safe(s.About) + "\n")
				}
			}

			return nil
		},
	}
}

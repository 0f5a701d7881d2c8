package main

import (
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/selftest"
	"example.com/runner/internal/selftestrole"
)

// selftestRoleCommand is the hidden command that runner selftest starts and kills.
func selftestRoleCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Hidden: true, Usage: "run a process of a selftest", UsageText: "runner __selftest ROLE DIR ...",
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) < 2 {
				return failure.Usage("%s is for runner selftest", selftest.RoleCommand)
			}
			return selftestrole.Run(c.Context, a.Stderr, words[0], words[1], words[2:])
		},
	}
}

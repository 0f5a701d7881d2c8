package main

import (
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
)

func versionCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Usage: "print version, commit and schema of this program", UsageText: "runner version",
		Description: `EXAMPLES
  runner version
  runner version --json

version prints one line: the version of runner, the commit of its source, the
version of the database schema that it writes, the version of SQLite, the
version of Go, and the system. runner -V and runner --version print the same.

EXIT STATUS
  0   done
  2   invalid usage`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("version takes no arguments; got %q", c.Args().First())
			}
			return cli.PrintVersion(a.Printer)
		},
	}
}

package main

import (
	"strings"
	"testing"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/term"
	"example.com/runner/internal/term/termtest"
)

func TestHelpFitsEightyColumnsAndEndsWithExitStatus(t *testing.T) {
	list := commands(&cli.App{})
	for _, c := range list {
		list = append(list, c.Subcommands...)
	}
	for _, c := range list {
		p, out, _ := termtest.Printer(0)
		if err := cli.CommandHelp(p, cli.Line{Command: c, Path: []string{c.Name}}, cli.GlobalOptions()); err != nil {
			t.Error(c.Name, err)
		}
		p.Flush()
		for line := range strings.Lines(out.String()) {
			if term.Cells(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf(`%s: got %q; want term.Cells(TrimSuffix(line, "\n")) <= 80`, c.Name, line)
			}
		}
		last := out.String()[strings.LastIndex(out.String(), "\n\n")+2:]
		if !c.Hidden && !strings.HasPrefix(last, "EXIT STATUS") {
			t.Errorf("%s --help does not end with EXIT STATUS", c.Name)
		}
	}
}

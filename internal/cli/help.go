package cli

import (
	"cmp"
	"fmt"
	"strings"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/term"
)

// rootHelp prints the screen of runner without arguments: every command, in at most 80 columns.
func (a *App) rootHelp(list []*Command, line Line) error {
	p := a.Printer
	d, err := a.FindDatabase(line.last("db"))
	if failure.ExitCode(err) == 2 {
		return err
	}
	p.Print("runner - a job runner in one file: one binary, one SQLite database\n\nusage: runner COMMAND [OPTIONS] [ARGS]\n\n")
	var also []string
	for _, group := range append(groups, "") {
		heading := group
		for _, c := range list {
			switch {
			case c.Hidden || c.Category != group:
			case group == "":
				also = append(also, c.Name)
			default:
				p.Print(fmt.Sprintf("  %-14s  %-8s  %s\n", heading, c.Name, c.Usage))
				heading = ""
			}
		}
	}
	p.Print(`
  runner enqueue -- backup.sh --full      the id goes to stdout
  runner enqueue -w -- make test          wait; exit with the task's status
  runner work                             run tasks until interrupted

`)
	switch {
	case err != nil:
		p.Print("database: none   (" + failure.Explain(err).What + ")\n")
	case d.from == "":
		p.Print(fitted("database: "+humanize.Safe(d.shown()), "(--db, $RUNNER_DB)"))
	default:
		p.Print(fitted("database: "+humanize.Safe(d.shown()), "(from "+d.from+")"))
	}
	p.Print("more: runner COMMAND --help   also: runner " + strings.Join(also, ", ") +
		"\nwords such as lane, lease, suspect: docs/glossary.md\n")
	return nil
}

// fitted appends a remark to a text. It puts the remark on a new line if both together exceed 80 columns.
func fitted(text, remark string) string {
	if term.Cells(text)+3+term.Cells(remark) > 80 {
		return text + "\n  " + remark + "\n"
	}
	return text + "   " + remark + "\n"
}

// CommandHelp prints the output of COMMAND --help: usage, options, and the long text, which ends with EXIT STATUS.
func CommandHelp(p *term.Printer, line Line, globals []*Option) error {
	c := line.Command
	name := strings.Join(append([]string{"runner"}, line.Path...), " ")
	for i, form := range strings.Split(strings.TrimSpace(cmp.Or(c.UsageText, name+" [OPTIONS]")), "\n") {
		p.Print([]string{"usage: ", "       "}[min(i, 1)] + strings.TrimSpace(form) + "\n")
	}
	p.Print("\n" + c.Usage + "\n")
	if len(c.Aliases) > 0 {
		p.Print("also known as: " + strings.Join(c.Aliases, ", ") + "\n")
	}
	if len(c.Subcommands) > 0 {
		p.Print("\nCOMMANDS\n")
		for _, sub := range c.Subcommands {
			p.Print(fmt.Sprintf("  %-10s  %s\n", sub.Name, sub.Usage))
		}
	}
	if list := optionsOf(c); len(list) > 0 {
		p.Print("\nOPTIONS\n" + OptionHelp(list))
	}
	p.Print("\nGLOBAL OPTIONS\n" + OptionHelp(globals))
	if text := strings.TrimSpace(c.Description); text != "" {
		p.Print("\n" + text + "\n")
	}
	return nil
}

func OptionHelp(list []*Option) string {
	const indent = 28
	var b strings.Builder
	for _, o := range list {
		left := "  " + o.String()
		if len(left)+2 > indent {
			b.WriteString(left + "\n")
			left = ""
		}
		usage := o.usage
		if o.env != "" && !strings.Contains(usage, "$"+o.env) {
			usage += "; $" + o.env
		}
		for _, text := range term.Wrap(usage, 80-indent) {
			fmt.Fprintf(&b, "%-*s%s\n", indent, left, text)
			left = ""
		}
	}
	return b.String()
}

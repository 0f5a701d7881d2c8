package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
)

// rootHelp prints the help of runner, which lists all commands. Lines have at
// most 80 columns.
func (a *App) rootHelp(list []*Command, line Line) error {
	p := a.Printer
	d, err := a.FindDatabase(line.last("db"))
	if ui.ExitCode(err) == 2 {
		return err
	}

	p.Print("runner - a job runner in one file: one binary, one SQLite database\n" + `
  runner enqueue -- backup.sh --full      add a task; print its id
  runner run -- make test                 run it here; exit with its status
  runner work                             run tasks until interrupted

usage: runner COMMAND [OPTIONS] [ARGS]

`)
	var also []string
	for _, group := range append(groups, "") {
		heading := group
		for _, c := range list {
			switch {
			case c.Hidden || c.Category != group:
			case group == "":
				also = append(also, c.Name)
			default:
				p.Print(fmt.Sprintf("  %-10s%-8s  %s\n", heading, c.Name, c.Usage))
				heading = ""
			}
		}
	}

	p.Print("\nGLOBAL OPTIONS\n" + OptionHelp(a.globals) + "\n")
	if err != nil {
		p.Print("database: none   (" + ui.Explain(err).What + ")\n")
	} else {
		p.Print("database: " + humanize.Safe(d.describe()) + "\n")
	}

	p.Print("more: runner COMMAND --help   also: runner " + strings.Join(also, ", ") +
		"\nterms such as lane, lease and suspect: docs/glossary.md\n")
	return nil
}

// CommandHelp prints the help of a command: purpose, examples, usage, options
// by group, and the rest of the description, whose first paragraph has the
// examples.
func CommandHelp(p *ui.Printer, line Line, globals []*Option) error {
	c := line.Command
	name := strings.Join(append([]string{"runner"}, line.Path...), " ")
	examples, text, _ := strings.Cut(strings.TrimSpace(c.Description), "\n\n")
	p.Print(name + " - " + c.Usage + "\n\n" + examples + "\n\n")
	forms := cmp.Or(c.UsageText, name+" [OPTIONS]")
	p.Print("usage: " + strings.ReplaceAll(forms, "\n", "\n       ") + "\n")

	if len(c.Aliases) > 0 {
		p.Print("alias: runner " + strings.Join(c.Aliases, ", ") + "\n")
	}
	if len(c.Subcommands) > 0 {
		p.Print("\nCOMMANDS\n")
		for _, sub := range c.Subcommands {
			p.Print(fmt.Sprintf("  %-10s  %s\n", sub.Name, sub.Usage))
		}
	}

	options := optionsOf(c)
	p.Print(groupedHelp(options) + "\n")
	if slices.ContainsFunc(options, func(o *Option) bool { return o.hint == hintTime || o.hint == hintWhen }) {
		p.Print(humanize.Help + "\n")
	}
	if !strings.Contains(c.Description, "\nEXIT STATUS") {
		text += exitStatus
	}

	p.Print(globalLine(globals) + "\n" + strings.TrimSpace(text) + "\n")
	return nil
}

// exitStatus is for all commands but those that exit with the status of a task.
const exitStatus = `

EXIT STATUS
  0      done; also if no task was selected
  1      not done, or only in part; stderr says why
  2      invalid usage; nothing was changed
  3      some ids or names do not exist; the others are done
  75     the database is busy, or the disk is full; it is safe to try again
  128+n  signal n ended runner`

// groupedHelp returns the help of options, with a heading for each group.
func groupedHelp(list []*Option) string {
	text := ""
	for len(list) > 0 {
		heading := list[0].group
		var group, rest []*Option
		for _, o := range list {
			if o.group == heading {
				group = append(group, o)
			} else {
				rest = append(rest, o)
			}
		}

		text += "\n" + strings.ToUpper(cmp.Or(heading, "options")) + "\n" + OptionHelp(group)
		list = rest
	}

	return text
}

// globalLine lists the names of the global options, which only the help of
// runner itself describes.
func globalLine(globals []*Option) string {
	var names []string
	for _, o := range globals {
		names = append(names, "--"+o.name)
	}
	return strings.Join(ui.Wrap("global options (see runner --help): "+strings.Join(names, ", "), 78), "\n  ") + "\n"
}

// OptionHelp returns the help of options.
func OptionHelp(list []*Option) string {
	const indent = 28
	var b strings.Builder
	for _, o := range list {
		left := "  " + o.String()
		if len(left)+2 > indent {
			b.WriteString(left + "\n")
			left = ""
		}

		usage := o.description()
		if o.env != "" && !strings.Contains(usage, "$"+o.env) {
			usage += "; $" + o.env
		}

		for _, text := range ui.Wrap(usage, 80-indent) {
			fmt.Fprintf(&b, "%-*s%s\n", indent, left, text)
			left = ""
		}
	}

	return b.String()
}

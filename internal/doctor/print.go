package doctor

import (
	"fmt"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
)

// Print prints the result of a check as a record, as a line for other programs, or as text for people.
func Print(p *term.Printer, c record.Check) error {
	try := ""
	if c.Try != nil {
		try = *c.Try
	}
	switch {
	case p.JSON:
		return p.Record(c)
	case !p.Stdout.TTY:
		p.Fields(c.Status, c.Check, c.Message, try)
		return nil
	}
	word, paint := c.Status, map[string]term.Colour{OK: term.Green, Warn: term.Yellow, Fail: term.Red}[c.Status]
	if c.Status == Fail {
		word = "FAIL"
	}
	lead := p.Stdout.Paint(paint, word) + fmt.Sprintf("%*s%-13s", 6-len(word), "", c.Check)
	const left = 19
	for _, line := range term.Wrap(humanize.Safe(c.Message), max(p.Stdout.Width-left, 20)) {
		p.Print(lead + term.Cut(line, max(p.Stdout.Width-left, 20)) + "\n")
		lead = fmt.Sprintf("%*s", left, "")
	}
	if try != "" {
		lead = "        try: "
		for _, line := range term.Wrap(humanize.Safe(try), max(p.Stdout.Width-len(lead), 20)) {
			p.Print(lead + line + "\n")
			lead = "             "
		}
	}
	return nil
}

package doctor

import (
	"fmt"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
)

// Check is the result of a check.
type Check struct {
	Check   string // name of the check
	Status  string // OK, Warn or Fail
	Message string
	Try     string // what helps; may be empty
}

// Print prints the result of a check.
func Print(p *term.Printer, c Check) error {
	return p.Answer(record.Check(c.Check, c.Status, c.Message, c.Try), c.text(p.Stdout), c.Status, c.Check, c.Message, c.Try)
}

// text returns the result for people.
func (c Check) text(to term.Stream) string {
	word, paint := c.Status, map[string]term.Colour{OK: term.Green, Warn: term.Yellow, Fail: term.Red}[c.Status]
	if c.Status == Fail {
		word = "FAIL"
	}
	var b strings.Builder
	lead := to.Paint(paint, word) + fmt.Sprintf("%*s%-13s", 6-len(word), "", c.Check)
	const left = 19
	for _, line := range term.Wrap(humanize.Safe(c.Message), max(to.Width-left, 20)) {
		b.WriteString(lead + term.Cut(line, max(to.Width-left, 20)) + "\n")
		lead = strings.Repeat(" ", left)
	}
	if c.Try != "" {
		lead = "        try: "
		for _, line := range term.Wrap(humanize.Safe(c.Try), max(to.Width-len(lead), 20)) {
			b.WriteString(lead + line + "\n")
			lead = "             "
		}
	}
	return b.String()
}

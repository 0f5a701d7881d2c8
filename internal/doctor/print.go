package doctor

import (
	"fmt"
	"strings"

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
	text := term.Hang(fmt.Sprintf("%-6s%-13s", word, c.Check), c.Message, to.Width)
	text = to.Paint(paint, word) + strings.TrimPrefix(text, word)
	if c.Try != "" {
		text += term.Hang("        try: ", c.Try, 1000) // a command stays whole
	}
	return text
}

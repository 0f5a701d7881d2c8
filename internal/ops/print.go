package ops

import (
	"fmt"
	"strings"

	"example.com/runner/internal/ui"
)

// Check is the result of a check.
type Check struct {
	Check   string // name of the check
	Status  string // OK, Warn or Fail
	Message string
	Try     string // what helps; may be empty
}

// Print prints the result of a check.
func Print(p *ui.Printer, c Check) error {
	return p.Answer(ui.Check(c.Check, c.Status, c.Message, c.Try), c.text(p.Stdout),
		c.Status, c.Check, c.Message, c.Try)
}

// text returns the result for people.
func (c Check) text(to ui.Stream) string {
	word, paint := c.Status, map[string]ui.Colour{OK: ui.Green, Warn: ui.Yellow, Fail: ui.Red}[c.Status]
	if c.Status == Fail {
		word = "FAIL"
	}
	text := ui.Hang(fmt.Sprintf("%-6s%-13s", word, c.Check), c.Message, to.Width)
	text = to.Paint(paint, word) + strings.TrimPrefix(text, word)
	if c.Try != "" {
		text += ui.Hang("        try: ", c.Try, 1000) // a command stays whole
	}
	return text
}

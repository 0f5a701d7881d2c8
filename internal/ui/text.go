package ui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"example.com/runner/internal/humanize"
)

// EscapeJSON returns a line of JSON with JSON escapes in place of characters
// that could control a terminal. encoding/json leaves some of them unescaped.
func EscapeJSON(line string) string {
	if !strings.ContainsFunc(strings.TrimSuffix(line, "\n"), humanize.IsControl) {
		return line
	}

	var b strings.Builder
	for _, r := range line {
		if humanize.IsControl(r) && r != utf8.RuneError && r != '\n' { // the only newline is the last one
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

// Cells returns how many cells a text takes on a terminal.
func Cells(text string) int {
	if len(text) == utf8.RuneCountInString(text) { // ASCII; the first use of package runewidth is slow
		return len(text)
	}
	return runewidth.StringWidth(text)
}

// Cut returns a text that is at most width cells wide. A shortened text ends
// with an ellipsis.
func Cut(text string, width int) string {
	switch {
	case width <= 0:
		return ""
	case Cells(text) <= width:
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// CutLeft is Cut for the other end of a text.
func CutLeft(text string, width int) string {
	if Cells(text) <= width {
		return text
	}
	return runewidth.TruncateLeft(text, Cells(text)-width+1, "…")
}

// Hang returns lead and a text in lines of at most width cells. The lines after
// the first hang below the text.
func Hang(lead, text string, width int) string {
	var b strings.Builder
	room := max(width-Cells(lead), 8)
	for _, line := range Wrap(humanize.Safe(text), room) {
		b.WriteString(lead + Cut(line, room) + "\n")
		lead = strings.Repeat(" ", Cells(lead))
	}
	return b.String()
}

// Wrap breaks a text between words into lines of at most width characters. A
// longer word gets a line of its own.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}

	return append(lines, line)
}

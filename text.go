package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// escapeJSON writes the characters of safe as JSON escapes, where encoding/json leaves them as they are.
func escapeJSON(line string) string {
	line, newline := strings.CutSuffix(line, "\n")
	if strings.ContainsFunc(line, humanize.Drives) {
		var b strings.Builder
		for _, r := range line {
			if humanize.Drives(r) && r != utf8.RuneError {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		line = b.String()
	}
	if newline {
		line += "\n"
	}
	return line
}

// cells is the width of a text on a terminal.
func cells(text string) int {
	if isASCII(text) { // the tables of runewidth take a moment to build
		return len(text)
	}
	return runewidth.StringWidth(text)
}

// cut shortens a text to so many cells, with … at its end.
func cut(text string, width int) string {
	switch {
	case width <= 0:
		return ""
	case cells(text) <= width:
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stateColour is the colour of a state's name.
func stateColour(state string) colour {
	switch jobs.State(state) {
	case jobs.Running:
		return blue
	case jobs.Completed:
		return green
	case jobs.Failed:
		return red
	case jobs.Retrying:
		return yellow
	case jobs.Scheduled, jobs.Cancelled:
		return dim
	}
	return ""
}

// wait is how many tasks wait: "1 task waits", "118 tasks wait".
func wait(n int) string { return humanize.Does(n, "task", "waits", "wait") }

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"
	"github.com/mattn/go-runewidth"

	"example.com/runner/jobs"
)

// safe shows control characters, marks that change the direction of text, and bytes that are not UTF-8, instead of handing
// them to the terminal: \n, \t, \x1b, \u202e. Everything else stays as it is.
func safe(text string) string {
	if !strings.ContainsFunc(text, drives) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < 0x20, r == 0x7f:
			switch text[i] {
			case '\n':
				b.WriteString(`\n`)
			case '\t':
				b.WriteString(`\t`)
			case '\r':
				b.WriteString(`\r`)
			default:
				fmt.Fprintf(&b, `\x%02x`, text[i])
			}
		case drives(r) && r != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// drives says whether a terminal might obey the character instead of showing it. RuneError stands for broken UTF-8, too.
func drives(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f: // C0, DEL, C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069: // bidi
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff: // line and paragraph separators, byte order mark
		return true
	}
	return r == utf8.RuneError
}

// safeLines is safe for text of several lines with tabs.
func safeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j, part := range parts {
			parts[j] = safe(part)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// escapeJSON writes the characters of safe as JSON escapes, where encoding/json leaves them as they are.
func escapeJSON(line string) string {
	line, newline := strings.CutSuffix(line, "\n")
	if strings.ContainsFunc(line, drives) {
		var b strings.Builder
		for _, r := range line {
			if drives(r) && r != utf8.RuneError {
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

// age is how long ago, or how soon, in one unit: 12s, 9m, 2h, 6d.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// took is how long something lasted, in two figures or two units: 142ms, 2.1s, 11s, 4m02s, 1h0m, 6d4h.
func took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// exact is a duration as parseDuration reads it: 1h30m, 30d, 250ms.
func exact(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	text := ""
	for _, u := range units[1:] {
		if n := d / u.size; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + u.name
			d -= n * u.size
		}
	}
	return cmp.Or(text, "0")
}

// size is a number of bytes for people: 118 B, 1.2 MB, 84 MB.
func size(bytes int64) string {
	n, unit := float64(bytes), 0
	names := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	for n >= 999.5 && unit < len(names)-1 {
		n, unit = n/1000, unit+1
	}
	if n < 9.95 && unit > 0 {
		return fmt.Sprintf("%.1f %s", n, names[unit])
	}
	return fmt.Sprintf("%.0f %s", n, names[unit])
}

// exactSize is a number of bytes as parseSize reads it: 1MiB, 1000.
func exactSize(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size && bytes%u.size == 0 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// count is a number with commas: 1,284.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(text, "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return text[:len(text)-len(strings.TrimLeft(text, "-"))] + digits
}

// jobText is what a task runs: its label, if it has one, then the command quoted for a shell, or the job and its arguments.
func jobText(t jobs.Task) string {
	text := t.Job
	if argv, err := jobs.Argv(t.Args); err == nil && t.Job == jobs.CommandJob {
		text = shellescape.QuoteCommand(argv)
	} else if len(t.Args) > 0 {
		text += " " + string(t.Args)
	}
	if t.Label != "" {
		return t.Label + ": " + text
	}
	return text
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

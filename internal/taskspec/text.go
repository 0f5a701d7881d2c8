package taskspec

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
)

// Describe returns one line that says what a task runs: a command, quoted for a shell, or the name of a job and its arguments. The line may
// contain control characters from the user who enqueued the task. Escape them before you print the line on a terminal.
func Describe(t jobs.Task) string {
	if t.Job == jobs.CommandJob {
		if argv, err := Argv(t.Args); err == nil {
			return Quote(argv)
		}
	}
	return strings.TrimSpace(t.Job + " " + string(t.Args))
}

// Quote returns the words of a command as a command line for a shell. A word that contains single quotes gets double quotes, which are
// easier to read, unless it contains a character that is special within double quotes. A word that is not UTF-8 is written as $'...', which
// bash, zsh and ksh understand.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		switch {
		case !utf8.ValidString(word):
			words[i] = quoteBytes(word)
		case strings.Contains(word, "'") && !strings.ContainsAny(word, "\"$`\\!"):
			words[i] = `"` + word + `"`
		default:
			words[i] = shellescape.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// quoteBytes returns a word as $'...'. Each byte that is not a printable ASCII character becomes three octal digits.
func quoteBytes(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\\' || c == '\'':
			b.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

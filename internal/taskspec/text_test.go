package taskspec_test

import (
	"os/exec"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/test/testkit"
)

// TestQuote checks the quoted words, and that bash turns them back into the
// same words.
func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"backup.sh":                  `backup.sh`,
		"":                           `''`,
		"two words":                  `'two words'`,
		"echo 'no data' >&2; exit 1": `"echo 'no data' >&2; exit 1"`,
		"it's $HOME":                 `'it'"'"'s $HOME'`,
		"it's `id`":                  `'it'"'"'s ` + "`id`'",
		`it's a "test"`:              `'it'"'"'s a "test"'`,
		`it's a \ here`:              `'it'"'"'s a \ here'`,
		"it's on!":                   `'it'"'"'s on!'`,
		"it's\ntwo lines":            "\"it's\ntwo lines\"",
		"it's\xff":                   `$'it\'s\377'`,
	} {
		got := taskspec.Quote([]string{word})
		testkit.Equal(t, "quoted "+word, got, want)
		back, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+got).Output()
		testkit.Equal(t, "error", err, nil)
		testkit.Equal(t, "word that the shell gets from "+got, string(back), word)
	}
}

//go:build unix

package runner_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// hardWords are words that shells, templates, formats, JSON or SQL interpret as
// syntax.
var hardWords = []string{"", " ", "a b", "\t", "\n", "\r\n", "'", `"`, "`id`", "$(id)", "$HOME", "${HOME}", "~", "*", "?", "[a-z]",
	"{a,b}", "!", "!!", "#", ";", "&&", "|",
	"> x", "<", "\\", `\\`, `\n`, `\0`, "%s", "%d%n", "{{.id}}", "{{", "}}", "<script>", "&amp;", "--", "-", "-rf", "--help", "=", "a=b",
	"é",
	"ё", "漢字", "🙂", "a\u0301", "\u202e",
	"\u2028", "\ufeff", "\x01", "\x1b[31m", "\x7f", "\u0085", "null", "true", "[]", "{}", `{"a":1}`, "'; DROP TABLE tasks; --", "?1", ":a",
	"@b", "0x10", "1e9", "%00",
	strings.Repeat("x", 4096), strings.Repeat("'\"\\", 500)}

func TestArgumentsReachCommandUnchanged(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	handlers(r)
	words := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(hardWords), rapid.String()), 0, 30)
	for seed := range 20 {
		list := hardWords
		if seed > 0 {
			list = words.Example(seed)
		}
		list = slices.Clone(list)
		for i, word := range list {
			list[i] = strings.ReplaceAll(word, "\x00", "") // no argument can contain a zero byte
		}
		argv := append([]string{"sh", "-c", `for word; do printf '%s\0' "$word"; done`, "sh"}, list...)
		task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: argv}))
		runnerkit.Drain(t, r)
		want := strings.Join(list, "\x00")
		if len(list) > 0 {
			want += "\x00"
			if got := runnerkit.Output(t, r, task.ID); got != want {
				t.Errorf("%q\nwant %q", got, want)
			}
		}
		kept, err := taskspec.Argv(runnerkit.Get(t, r, task.ID).Args)
		testkit.NoError(t, err)
		testkit.Equal(t, "stored arguments", kept, argv)
	}
}

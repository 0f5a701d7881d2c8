package ui_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestNumbersAndJobTexts(t *testing.T) {
	var got []string
	for _, d := range []time.Duration{0, 142 * time.Millisecond, 2199 * time.Millisecond, 11 * time.Second, 242 * time.Second, time.Hour,
		8040 * time.Second, 21*time.Hour + 30*time.Minute, 148 * time.Hour, 252 * time.Hour} {
		got = append(got, humanize.Took(d)+"/"+humanize.Age(d)+"/"+humanize.WriteDuration(d))
	}
	if want := "0ms/0s/0 142ms/0s/142ms 2.1s/2s/2s199ms 11s/11s/11s 4m02s/4m/4m2s 1h0m/1h/1h 2h14m/2h14m/2h14m " +
		"21h30m/21h/21h30m 6d4h/6d4h/6d4h 10d12h/10d/10d12h"; strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	got = nil
	for _, n := range []int64{0, 118, 999, 1000, 1234567, 9_960_000, 84_000_000, 999_999, 31_000_000_000} {
		got = append(got, humanize.Size(n))
	}
	if want := []string{"0 B", "118 B", "999 B", "1.0 kB", "1.2 MB", "10 MB", "84 MB", "1000 kB", "31 GB"}; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	numbers := strings.Join([]string{humanize.Count(0), humanize.Count(392), humanize.Count(-1284), humanize.Count(1_000_000),
		humanize.ExactSize(1 << 20), humanize.ExactSize(1000)}, " ")
	testkit.Equal(t, "numbers", numbers, "0 392 -1,284 1,000,000 1MiB 1000")
	task := jobs.Task{Job: "command", Label: "nightly", Args: json.RawMessage(`["report.sh","--days","7 8",""]`)}
	testkit.Equal(t, "command", ui.JobText(task), "nightly: report.sh --days '7 8' ''")
	function := jobs.Task{Job: "email.send", Args: json.RawMessage(`{"to":"ann"}`)}
	testkit.Equal(t, "function", ui.JobText(function), `email.send {"to":"ann"}`)
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b]0;x\a\u009b31m\u202e\xff plain 映画")
	f.Fuzz(func(t *testing.T, text string) {
		shown := humanize.Safe(text)
		for _, r := range shown {
			if humanize.IsControl(r) && r != utf8.RuneError {
				t.Fatalf("%q: got %q, want valid text without control characters", text, shown)
			}
		}
		if !utf8.ValidString(shown) || humanize.Safe(shown) != shown {
			t.Fatalf("%q: got %q, want valid text without control characters", text, shown)
		}
		var line bytes.Buffer
		if err := ui.WriteJSON(&line, text); err != nil {
			t.Fatal(err)
		}
		var back string
		testkit.NoError(t, json.Unmarshal(line.Bytes(), &back))
		if back != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Fatalf("%q: got JSON %s, want the same text", text, &line)
		}
		if body := strings.TrimSuffix(line.String(), "\n"); strings.ContainsFunc(body,
			func(r rune) bool { return humanize.IsControl(r) && r != utf8.RuneError }) {
			t.Fatalf("%q: got JSON %q, want no control characters", text, body)
		}
		for width := range 30 {
			if c := ui.Cut(shown, width); ui.Cells(c) > width {
				t.Fatalf("%q cut to %d: got %q, want at most %[2]d cells", shown, width, c)
			}
		}
	})
}

package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/test/testkit"
)

// logged returns the text that a log of this style writes for one record.
func logged(t *testing.T, to ui.Stream, style Style, level slog.Level, message string, args ...any) string {
	t.Helper()
	var out bytes.Buffer
	to.Writer = &out
	record := slog.NewRecord(time.Date(2026, 1, 31, 14, 0, 1, 0, time.FixedZone("", 3600)), level, message, 0)
	record.Add(args...)
	if err := NewLog(to, style, slog.LevelInfo).Handler().Handle(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLogStyles(t *testing.T) {
	args := []any{"db", "/var/lib/runner.db", "slots", 4, "queues", "all"}
	for style, want := range map[Style]string{
		Terminal: "14:00:01 INFO  ready           db=/var/lib/runner.db slots=4 queues=all\n",
		Plain:    "2026-01-31T14:00:01.000+01:00 INFO  ready           db=/var/lib/runner.db slots=4 queues=all\n",
		Journal:  "<6>ready db=/var/lib/runner.db slots=4 queues=all\n",
		JSON: `{"time":"2026-01-31T13:00:01.000Z","level":"INFO","msg":"ready","db":"/var/lib/runner.db","slots":4,"queues":"all"}` +
			"\n",
	} {
		testkit.Equal(t, "log line", logged(t, ui.Stream{}, style, slog.LevelInfo, "ready", args...), want)
	}
	for level, want := range map[slog.Level]string{slog.LevelDebug: "<7>", slog.LevelInfo: "<6>", slog.LevelWarn: "<4>",
		slog.LevelError: "<3>"} {
		testkit.Equal(t, "log line", logged(t, ui.Stream{}, Journal, level, "x"), want+"x\n")
	}
	if got := logged(t, ui.Stream{Colour: true}, Terminal, slog.LevelWarn, "x"); got != "14:00:01 \x1b[33mWARN \x1b[0m x\n" {
		t.Errorf("got %q, want %q", got, "14:00:01 \x1b[33mWARN \x1b[0m x\n")
	}
}

func TestLogValuesStayOneWordOnOneLine(t *testing.T) {
	at := time.Date(2026, 1, 31, 13, 11, 13, 0, time.UTC)
	for _, test := range []struct {
		value      any
		text, json string
	}{
		{"plain", "plain", `"plain"`},
		{"", `""`, `""`},
		{"two words", `"two words"`, `"two words"`},
		{`a="b"`, `"a=\"b\""`, `"a=\"b\""`},
		{"a\nb\x1b]0;x\a", `"a\nb\x1b]0;x\a"`, `"a\nb\u001b]0;x\u0007"`},
		{"\u202egnp\u0085", `"\u202egnp\u0085"`, `"\u202egnp\u0085"`},
		{"\xff", `"\xff"`, `"\ufffd"`},
		{"größe", "größe", `"größe"`},
		{2*time.Second + 13456*time.Microsecond, "2.013s", "2.013"},
		{time.Minute, "1m0s", "60"},
		{at, at.Local().Format("2006-01-02T15:04:05.000Z07:00"), `"2026-01-31T13:11:13.000Z"`},
		{errors.New("it broke"), `"it broke"`, `"it broke"`},
		{[]int{1, 2}, `"[1 2]"`, `[1,2]`},
	} {
		testkit.Equal(t, "log line", logged(t, ui.Stream{}, Journal, slog.LevelInfo, "m", "k", test.value), "<6>m k="+test.text+"\n")
		got := logged(t, ui.Stream{}, JSON, slog.LevelInfo, "m", "k", test.value)
		if !strings.HasSuffix(got, `"msg":"m","k":`+test.json+"}\n") || !json.Valid([]byte(got)) {
			t.Errorf("%v: got %q, want JSON with the value %s", test.value, got, test.json)
		}
	}
}

func TestLogTimesOfDayHaveNoDateOnTerminal(t *testing.T) {
	day := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	for hours, want := range map[int]string{1: "13:00:00", 24: "2026-02-01 12:00:00"} {
		var out bytes.Buffer
		record := slog.NewRecord(day, slog.LevelInfo, "m", 0)
		record.Add("next", day.Add(time.Duration(hours)*time.Hour))
		if err := NewLog(ui.Stream{Writer: &out}, Terminal, slog.LevelInfo).Handler().Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || hours == 1 && strings.Contains(out.String(), "2026") {
			t.Errorf("%q, want %s", &out, want)
		}
	}
}

// TestLogHandlerPassesSlogtest checks the handler with the package
// testing/slogtest. For that it parses the output of the style Plain.
func TestLogHandlerPassesSlogtest(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		out.Reset()
		return NewLog(ui.Stream{Writer: &out}, Plain, slog.LevelInfo).Handler()
	}, func(t *testing.T) map[string]any {
		words := strings.Fields(out.String())
		m := map[string]any{}
		if strings.Contains(words[0], "T") && words[0][0] != '0' {
			m[slog.TimeKey] = words[0]
		}
		m[slog.LevelKey], m[slog.MessageKey] = words[1], words[2]
		for _, word := range words[3:] {
			key, value, _ := strings.Cut(word, "=")
			at := m
			for group, rest, ok := strings.Cut(key, "."); ok; group, rest, ok = strings.Cut(key, ".") {
				if at[group] == nil {
					at[group] = map[string]any{}
				}
				at, key = at[group].(map[string]any), rest
			}
			at[key] = value
		}
		return m
	})
}

// TestLogStyleFollowsStderr leaves the journal to the script work, because it
// needs a stderr of its own.
func TestLogStyleFollowsStderr(t *testing.T) {
	for _, test := range []struct {
		format string
		to     ui.Stream
		want   Style
	}{
		{"auto", ui.Stream{Writer: io.Discard}, Plain},
		{"auto", ui.Stream{Writer: io.Discard, TTY: true}, Terminal},
		{"text", ui.Stream{Writer: io.Discard, TTY: true}, Plain},
		{"json", ui.Stream{Writer: io.Discard, TTY: true}, JSON},
	} {
		testkit.Equal(t, "style", StyleFor(test.format, test.to), test.want)
	}
}

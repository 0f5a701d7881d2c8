package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/errcode"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// testPrinter returns a printer that writes to buffers: a pipe, or with columns > 0 a terminal of that width. Flush it
// before looking at out.
func testPrinter(columns int) (p *printer, out, talk *bytes.Buffer) {
	out, talk = new(bytes.Buffer), new(bytes.Buffer)
	return newPrinter(printerSettings{stdin: strings.NewReader(""), stdout: out, stderr: talk, now: time.Now, getenv: func(name string) string {
		return map[string]string{"RUNNER_FORCE_TTY": fmt.Sprint(columns), "NO_COLOR": "1"}[name]
	}}), out, talk
}

func TestColourIsJudgedPerStream(t *testing.T) {
	for _, test := range []struct {
		flag, env string
		want      bool
	}{
		{"", "", false}, {"", "RUNNER_FORCE_TTY=80", true}, {"", "RUNNER_FORCE_TTY=80 NO_COLOR=1", false},
		{"", "RUNNER_FORCE_TTY=80 TERM=dumb", false},
		{"always", "NO_COLOR=1", true}, {"never", "CLICOLOR_FORCE=1", false}, {"", "CLICOLOR_FORCE=1", true}, {"", "CLICOLOR_FORCE=0", false},
		{"", "CLICOLOR_FORCE=1 NO_COLOR=1", false}, {"auto", "RUNNER_FORCE_TTY=80", true},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		forced := 0
		fmt.Sscan(env["RUNNER_FORCE_TTY"], &forced)
		if s := newStream(io.Discard, forced, test.flag, func(n string) string { return env[n] }); s.colour != test.want {
			t.Errorf("%+v: %v", test, s.colour)
		}
	}
}

func TestNotesAreForTerminals(t *testing.T) {
	p, out, talk := testPrinter(0)
	p.note("hint")
	p.detail("detail")
	if p.fields("a\tb", `c\d`, "e\nf", "\x1b]0;x\a"); p.flush() != nil ||
		out.String() != `a\tb`+"\t"+`c\\d`+"\t"+`e\nf`+"\t"+`\x1b]0;x\x07`+"\n" {
		t.Errorf("%q", out)
	}
	if talk.Len() != 0 {
		t.Errorf("stderr %q", talk)
	}
	p, _, talk = testPrinter(80)
	if p.note("in %s", "me\x1bdia"); talk.String() != "in me\\x1bdia\n" {
		t.Errorf("stderr %q", talk)
	}
}

func TestFailuresAreExplained(t *testing.T) {
	locked := errors.New("database is locked (5) (SQLITE_BUSY)")
	busy := &jobs.Error{Kind: jobs.ErrBusy, What: "database is busy: /x/runner.db", Why: []string{"held for 10s (pid 4411)"}, Hint: "again",
		Err: fmt.Errorf("insert task: %w", locked)}
	for _, test := range []struct {
		err  error
		exit int
		text string
	}{
		{usage("bad \x1b").because("so").hint("better"), 2, "runner: bad \\x1b\n  so\n  try: better\n"},
		{fmt.Errorf("enqueue: %w", busy), 75, "runner: database is busy: /x/runner.db\n  held for 10s (pid 4411)\n  try: again\n"},
		{fmt.Errorf("begin: %w", locked), 1, "runner: begin: database is busy (5) (SQLITE_BUSY)\n"},
		{&jobs.FieldError{Field: "max_attempts", Msg: "0 is out of range"}, 2, "runner: --max-attempts: 0 is out of range\n"},
		{&jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, What: "no task 9999"}, 3, "runner: no task 9999\n  try: runner list\n"},
		{&jobs.Error{Kind: jobs.ErrNoDatabase, What: "no database at /x"}, 1, "runner: no database at /x\n"},
		{&jobs.Error{Kind: jobs.ErrFull, What: "disk is full"}, 75, "runner: disk is full\n"},
		{exitStatus(7), 7, ""},
		{whileWaiting(busy), 125, "runner: database is busy: /x/runner.db\n  held for 10s (pid 4411)\n  try: again\n"},
		{whileWaiting(usage("bad")), 2, "runner: bad\n"},
		{whileWaiting(&failure{code: "start", exit: 127, what: "not found"}), 127, "runner: not found\n"},
		{whileWaiting(exitStatus(3)), 3, ""},
		{nil, 0, ""},
	} {
		p, _, talk := testPrinter(0)
		if report(p, test.err); talk.String() != test.text || exitCode(test.err) != test.exit {
			t.Errorf("%v: exit %d\n%s", test.err, exitCode(test.err), talk)
		}
	}
	p, _, talk := testPrinter(0)
	p.verbose = true
	report(p, busy)
	if text := talk.String(); !strings.Contains(text, "cause: insert task: database is busy") || strings.Contains(text, "locked") {
		t.Error(text)
	}
	p, _, talk = testPrinter(0)
	p.json = true
	report(p, &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, What: "no task 9999"})
	want := `{"error":{"code":"not_found","message":"no task 9999","why":null,"try":"runner list","exit":3}}` + "\n"
	if talk.String() != want {
		t.Error(talk)
	}
}

func TestTableFits(t *testing.T) {
	columns := []column{{name: "ID", right: true}, {name: "STATE", paint: stateColour}, {name: "QUEUE", leaves: 2}, {name: "TRY", leaves: 1},
		{name: "AGE", right: true, leaves: 3}, {name: "TIME", right: true, leaves: 4}, {name: "NOTE", leaves: 5}, {name: "JOB"}}
	rows := [][]string{
		{"1042", "running", "default", "1/1", "12s", "11s", "", "backup.sh --full /srv"},
		{"1040", "retrying", "default", "2/3", "9m", "", "in 48s", "curl -fsS https://example.com/hook"},
		{"1039", "pending", "media", "0/5", "11m", "", "", "映画を変換する 👩‍👩‍👧 ffmpeg -i 入力.mov 出力.mp4"},
		{"1038", "failed", "mail", "1/1", "1h", "1h0m", "", "x\x1b]0;title\a \u202egnp"},
	}
	for _, width := range []int{10, 40, 60, 80, 120, 200} {
		for _, colour := range []bool{false, true} {
			p, out, _ := testPrinter(width)
			p.out.colour = colour
			p.table(table{columns: columns, rows: rows})
			p.flush()
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				for _, c := range []string{"31", "32", "33", "34", "2", "0"} {
					line = strings.ReplaceAll(line, "\x1b["+c+"m", "")
				}
				if cells(line) > width || strings.ContainsFunc(line, humanize.Drives) || strings.HasSuffix(line, " ") {
					t.Errorf("width %d: %d cells: %q", width, cells(line), line)
				}
			}
		}
	}
	p, out, _ := testPrinter(80)
	p.table(table{columns: columns, rows: rows[:2]})
	p.flush()
	if want := `  ID  STATE     QUEUE    TRY  AGE  TIME  NOTE    JOB
1042  running   default  1/1  12s   11s          backup.sh --full /srv
1040  retrying  default  2/3   9m        in 48s  curl -fsS https://example.com/…
`; out.String() != want {
		t.Errorf("80 columns:\n%s", out)
	}
	p, out, _ = testPrinter(40)
	p.table(table{columns: columns, rows: rows[:2]})
	p.flush()
	if want := `  ID  STATE     JOB
1042  running   backup.sh --full /srv
1040  retrying  curl -fsS https://examp…
`; out.String() != want {
		t.Errorf("40 columns:\n%s", out)
	}
	p, out, _ = testPrinter(20)
	p.table(table{columns: columns, rows: rows[1:2], long: true, headless: true})
	if p.flush(); out.String() != "1040  retrying  default  2/3  9m  in 48s  curl -fsS https://example.com/hook\n" {
		t.Errorf("long: %q", out)
	}
}

func TestFormat(t *testing.T) {
	record := map[string]any{"id": json.Number("9007199254740993"), "state": "failed", "label": nil, "args": []string{"a b", "<"}}
	for _, test := range []struct{ template, want string }{
		{`{{.id}}\t{{.state}}`, "9007199254740993\tfailed\n"},
		{`{{.label}}{{if .label}}!{{end}}\\`, "\\\n"},
		{`{{json .args}}{{printf "%s\n" .state}}`, "[\"a b\",\"<\"]failed\n\n"},
	} {
		p, out, _ := testPrinter(0)
		f, err := newFormatter(p, test.template)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.record(record); err != nil || p.flush() != nil || out.String() != test.want {
			t.Errorf("%s: %q %v", test.template, out, err)
		}
	}
	p, _, _ := testPrinter(0)
	if _, err := newFormatter(p, "{{.id"); exitCode(err) != 2 {
		t.Error(err)
	}
	f, _ := newFormatter(p, "{{.nosuch}}")
	if err := f.record(record); exitCode(err) != 2 {
		t.Error(err)
	}
}

func TestWordsForPeople(t *testing.T) {
	var got []string
	for _, d := range []time.Duration{0, 142 * time.Millisecond, 2199 * time.Millisecond, 11 * time.Second, 242 * time.Second, time.Hour,
		8040 * time.Second, 148 * time.Hour} {
		got = append(got, humanize.Took(d)+"/"+humanize.Age(d)+"/"+exact(d))
	}
	if want := "0ms/0s/0 142ms/0s/142ms 2.1s/2s/2s199ms 11s/11s/11s 4m02s/4m/4m2s 1h0m/1h/1h 2h14m/2h/2h14m 6d4h/6d/6d4h"; strings.Join(got,
		" ") != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	got = nil
	for _, n := range []int64{0, 118, 999, 1000, 1234567, 9_960_000, 84_000_000, 999_999, 31_000_000_000} {
		got = append(got, humanize.Size(n))
	}
	if want := []string{"0 B", "118 B", "999 B", "1.0 kB", "1.2 MB", "10 MB", "84 MB", "1.0 MB", "31 GB"}; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := strings.Join([]string{humanize.Count(0), humanize.Count(392), humanize.Count(-1284), humanize.Count(1_000_000),
		humanize.ExactSize(1 << 20), humanize.ExactSize(1000)}, " "); got != "0 392 -1,284 1,000,000 1MiB 1000" {
		t.Error(got)
	}
	task := jobs.Task{Job: "command", Label: "nightly", Args: json.RawMessage(`["report.sh","--days","7 8",""]`)}
	if got := runner.JobText(task); got != "nightly: report.sh --days '7 8' ''" {
		t.Error(got)
	}
	if got := runner.JobText(jobs.Task{Job: "email.send", Args: json.RawMessage(`{"to":"ann"}`)}); got != `email.send {"to":"ann"}` {
		t.Error(got)
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b]0;x\a\u009b31m\u202e\xff plain 映画")
	f.Fuzz(func(t *testing.T, text string) {
		shown := humanize.Safe(text)
		for _, r := range shown {
			if humanize.Drives(r) && r != utf8.RuneError {
				t.Fatalf("%q shows %q", text, shown)
			}
		}
		if !utf8.ValidString(shown) || humanize.Safe(shown) != shown {
			t.Fatalf("%q shows %q", text, shown)
		}
		var line bytes.Buffer
		if err := writeJSON(&line, text); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(line.Bytes(), &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Fatalf("%q is JSON %s", text, &line)
		}
		if body := strings.TrimSuffix(line.String(), "\n"); strings.ContainsFunc(body,
			func(r rune) bool { return humanize.Drives(r) && r != utf8.RuneError }) {
			t.Fatalf("%q is JSON %q", text, body)
		}
		for width := range 30 {
			if c := cut(shown, width); cells(c) > width {
				t.Fatalf("%q cut to %d: %q", shown, width, c)
			}
		}
	})
}

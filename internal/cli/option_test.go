package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/failure"
	"example.com/runner/jobs"
)

// parsed is the parsed command line that a command of testCommands received.
type parsed struct {
	command string
	c       *Context
	words   []string
}

// parse parses a command line for three small commands with Parse and urfave/cli. It returns the arguments that the command received.
func parse(t *testing.T, env map[string]string, args ...string) (parsed, error) {
	t.Helper()
	a := &App{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	var got parsed
	action := func(c *Context) error {
		got = parsed{command: c.Command.Name, c: c, words: c.Args().Slice()}
		return nil
	}
	list := []*Command{
		{Name: "enqueue", Action: action, Flags: []Flag{
			TextOption("queue q", "NAME", "", "default"), IntOption("priority p", "N", "", 5, -1<<31),
			Repeated("env e", "NAME=VALUE", "", One(func(s string) (string, error) { return s, nil })),
			DurationOption("in", "", 0), CodesOption("retry-on", ""), IdsOption("after", ""),
		}},
		{Name: "show", Aliases: []string{"sh"}, Action: action, Flags: append(a.Selectors(), BoolOption("follow f", ""),
			IntOption("rows n", "N", "", 30, 0))},
		{Name: "work", Action: action, Flags: FromEnvironment([]Flag{
			IntOption("concurrency c", "N", "", 1, 1), queueOption(), DurationOption("max-wait", "", 0), BoolOption("tee", ""),
		})},
		{Name: "schedule", Subcommands: []*Command{
			{Name: "add", Action: action, Flags: []Flag{TextOption("cron", "EXPR", "", "")}},
		}},
	}
	globals := GlobalOptions()
	line, err := Parse(list, globals, args, func(name string) string { return env[name] })
	if err != nil || line.Command == nil {
		return got, err
	}
	return got, newCLI(list, globals).RunContext(context.Background(), line.argv())
}

func TestOptionsStandAnywhere(t *testing.T) {
	for _, line := range []string{"show 42 --json", "--json show 42", "show --json 42", "sh --json=true 42",
		"show --json --db x 42 -n 3 --db y"} {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil || got.command != "show" || !slices.Equal(got.words, []string{"42"}) || !got.c.Bool("json") {
			t.Errorf("%s: %v %q json=%v", line, err, got.words, got.c.Bool("json"))
		}
	}
}

// urfave/cli issue #1424: its reordering of arguments lost the "--".
func TestWordsBelongToTheCommand(t *testing.T) {
	for line, want := range map[string]string{
		"enqueue -- help":                          "help",
		"enqueue help":                             "help",
		"enqueue h":                                "h",
		"enqueue -- -h":                            "-h",
		"enqueue echo -h --json":                   "echo -h --json",
		"enqueue -- --db x":                        "--db x",
		"enqueue -q media -- -- y":                 "-- y",
		"enqueue --queue=media echo -- y -q z":     "echo -- y -q z",
		"enqueue echo --generate-bash-completion":  "echo --generate-bash-completion",
		"enqueue -p -5 -":                          "-",
		"enqueue - -q x":                           "- -q x",
		"enqueue db json":                          "db json",
		"show -- -n --json":                        "-n --json",
		"schedule add nightly --cron x backup --y": "nightly backup --y",
		"schedule --json add nightly -- --cron z":  "nightly --cron z",
	} {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil || strings.Join(got.words, " ") != want {
			t.Errorf("%s: %q, %v; want %q", line, got.words, err, want)
		}
		if got.c != nil && strings.Contains(line, "media") && got.c.String("queue") != "media" {
			t.Errorf("%s: queue %q", line, got.c.String("queue"))
		}
	}
}

func TestValuesArriveWhole(t *testing.T) {
	got, err := parse(t, nil, "enqueue", "-e", "A=1,2", "--env", "B= x", "-e=C=", "-p", "1", "-p", "-5", "--retry-on", "75,100-111",
		"--after", "3,4", "--after=9", "--in", "1h30m", "x", "", "\n")
	if err != nil {
		t.Fatal(err)
	}
	if env := Get[[]string](got.c, "env"); !slices.Equal(env, []string{"A=1,2", "B= x", "C="}) {
		t.Errorf("env %q", env)
	}
	if n := got.c.Int("priority"); n != -5 || Get[int](got.c, "priority") != -5 {
		t.Errorf("priority %d: the last one wins", n)
	}
	if ids := Get[[]int64](got.c, "after"); !slices.Equal(ids, []int64{3, 4, 9}) {
		t.Errorf("after %v", ids)
	}
	if codes := Get[jobs.Codes](got.c, "retry-on"); codes != "75,100-111" {
		t.Errorf("retry-on %q", codes)
	}
	if d := Get[time.Duration](got.c, "in"); d != 90*time.Minute || !got.c.IsSet("in") || got.c.IsSet("queue") {
		t.Errorf("in %v", d)
	}
	if !slices.Equal(got.words, []string{"x", "", "\n"}) {
		t.Errorf("words %q", got.words)
	}
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"RUNNER_CONCURRENCY": "8", "RUNNER_QUEUE": "a,b", "RUNNER_MAX_WAIT": "", "RUNNER_TEE": "1",
		"RUNNER_BUSY_TIMEOUT": "3s", "RUNNER_ROWS": "7", "RUNNER_IN": "5m"}
	got, err := parse(t, env, "work")
	if err != nil {
		t.Fatal(err)
	}
	if n := Get[int](got.c, "concurrency"); n != 8 {
		t.Errorf("concurrency %d", n)
	}
	if q := Get[[]string](got.c, "queue"); !slices.Equal(q, []string{"a", "b"}) {
		t.Errorf("queues %q", q)
	}
	if !Get[bool](got.c, "tee") || got.c.IsSet("max-wait") || Get[time.Duration](got.c, "busy-timeout") != 3*time.Second {
		t.Error("tee, max-wait or busy-timeout")
	}
	// Options win over variables both before and after the command.
	for _, line := range []string{"--busy-timeout 1s work -c 2 -q z", "work --busy-timeout 1s -c 9 -q z -c 2"} {
		got, err = parse(t, env, strings.Fields(line)...)
		if err != nil || Get[int](got.c, "concurrency") != 2 || Get[time.Duration](got.c, "busy-timeout") != time.Second ||
			!slices.Equal(Get[[]string](got.c, "queue"), []string{"z"}) {
			t.Errorf(`%s: got %v; want no error, Get[int](got.c, "concurrency") = 2, Get[Duration](got.c, `+
				`"busy-timeout") = Second, Equal(Get[[]string](got.c, "queue"), []string{"z"})`,
				line, err)
		}
	}
	if got, err = parse(t, env, "show"); err != nil || Get[int](got.c, "rows") != 30 {
		t.Errorf("show reads a variable that is not its: %v", err)
	}
	if _, err = parse(t, map[string]string{"RUNNER_MAX_WAIT": "5"}, "work"); err == nil ||
		!strings.Contains(err.Error(), "$RUNNER_MAX_WAIT") {
		t.Errorf("bad variable: %v", err)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct{ line, what, try string }{
		{"enqeue", `unknown command "enqeue"`, "runner enqueue"},
		{"hsow", `unknown command "hsow"`, "runner show"},
		{"kill 4", `unknown command "kill"`, "runner cancel"},
		{"xyzzy", `unknown command "xyzzy"`, "runner --help"},
		{"shows", `unknown command "shows"`, "runner show"},
		{"schedule", "schedule needs a command", "runner schedule --help"},
		{"schedule ad", `unknown command "schedule ad"`, "runner schedule add"},
		{"-q x show", "unknown option -q before the command", "runner COMMAND -q"},
		{"show --qeue x", "unknown option --qeue of runner show", "--queue"},
		{"show -fn 5", "unknown option -fn of runner show", "-f -n"},
		{"show -queue x", "unknown option -queue of runner show", "--queue"},
		{"show -Z", "unknown option -Z of runner show", "runner show --help"},
		{"show -n", "-n needs a value: --rows N", ""},
		{"show -n x", `--rows "x": invalid whole number`, ""},
		{"show -n -1", `--rows "-1": too small; use 0 or more`, ""},
		{"show --follow=x", `--follow "x": invalid value; use true or false`, ""},
		{"show -s foo", `--state "foo": unknown state "foo"`, ""},
		{"show -q a/b", `--queue "a/b": invalid queue name`, ""},
		{"enqueue --in 5 x", `--in "5": missing unit; use 250ms, 10s, 5m, 2h, 1d or 1w`, ""},
		{"enqueue --retry-on 0 x", `--retry-on "0": invalid exit codes "0"`, ""},
		{"enqueue --after x y", `--after "x": invalid task id; use 41 or 41,42`, ""},
		{"show --color blue", `--color "blue": invalid value; use one of auto, always, never`, ""},
		{"show a\xff", `argument 2, "a\xff", is not UTF-8`, ""},
		{"show --label \x00", `--label "\x00": holds a NUL byte`, ""},
	} {
		_, err := parse(t, nil, strings.Fields(test.line)...)
		f := failure.Explain(err)
		if failure.ExitCode(err) != 2 || f.Code != "usage" || !strings.HasPrefix(f.What, test.what) || f.Try != test.try {
			t.Errorf("%s: exit %d, %q try %q", test.line, failure.ExitCode(err), f.What, f.Try)
		}
		if n := strings.Count(f.Text(false), "\n"); n > 3 {
			t.Errorf("%s: %d lines", test.line, n)
		}
	}
}

func TestSelection(t *testing.T) {
	read := func(line string) (Selection, error) {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		return ReadSelection(got.c, time.Unix(1_800_000_000, 0))
	}
	s, err := read("show 41 43,42 -n 1 41")
	if err != nil || !slices.Equal(s.Filter.IDs, []int64{41, 43, 42}) || s.empty {
		t.Errorf("got %+v %v; want no error, Equal(s.Filter.IDs, []int64{41, 43, 42}), not (s.empty)", s, err)
	}
	s, err = read("show -q a -q b -s failed,unfinished -s completed --older-than 1h --since 2h")
	if err != nil || !slices.Equal(s.Filter.Queues, []string{"a", "b"}) || len(s.Filter.States) != 7 || s.empty ||
		s.Filter.FinishedBefore.Unix() != 1_800_000_000-3600 || s.Filter.Since.Unix() != 1_800_000_000-7200 {
		t.Errorf(`got %+v %v; want no error, Equal(s.Filter.Queues, []string{"a", "b"}), len(s.Filter.States) = 7, not `+
			"(s.empty), s.Filter.FinishedBefore.Unix() = 1_800_000_000-3600, s.Filter.Since.Unix() = "+
			"1_800_000_000-7200",
			s, err)
	}
	if s, err = read("show"); err != nil || !s.empty || failure.ExitCode(s.Require("cancel")) != 2 {
		t.Errorf(`got %+v %v; want no error, s.empty, failure.ExitCode(s.Require("cancel")) = 2`, s, err)
	}
	if s, err = read("show --all"); err != nil || s.empty || !s.All {
		t.Errorf("got %+v %v; want no error, not (s.empty), s.All", s, err)
	}
	for _, line := range []string{"show 4 -q x", "show 4 --all", "show --all -q x", "show x", "show 0", "show 4,"} {
		if _, err := read(line); failure.ExitCode(err) != 2 {
			t.Errorf("%s: got %v, want failure.ExitCode(err) = 2", line, err)
		}
	}
}

func FuzzPermute(f *testing.F) {
	f.Add("show\x0142\x01--json\x01-n\x015")
	f.Add("enqueue\x01-p\x01-5\x01--\x01--\x01-")
	f.Add("--db\x01--\x01schedule\x01add\x01x\x01--cron=\x01y")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x01")
		got, err := parse(t, nil, args...)
		if err != nil && failure.ExitCode(err) != 2 {
			t.Fatalf("%q: got %v, want not (err != nil && failure.ExitCode(err) != 2)", args, err)
		}
		for _, word := range got.words {
			if !slices.Contains(args, word) {
				t.Fatalf("%q: word %q from nowhere", args, word)
			}
		}
		if err == nil && got.command == "enqueue" && len(got.words) > 0 && !slices.Equal(got.words, args[len(args)-len(got.words):]) {
			t.Fatalf("%q: words %q are not its end", args, got.words)
		}
	})
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/test/testkit"
)

// parsed is what a command of the test received from the parser.
type parsed struct {
	command string
	c       *Context
	words   []string

	app         *App
	selection   Selection
	queue       string
	queues, env []string
	priority    int
	rows        int
	concurrency int
	in, every   time.Duration
	after       []int64
	follow, tee bool
}

// parse parses a command line as App.Run does, but with a few small commands.
// It returns the options and arguments that the command received.
func parse(t *testing.T, env map[string]string, args ...string) (parsed, error) {
	t.Helper()
	a := &App{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	got := parsed{app: a, queue: "default", priority: 5, rows: 30}
	action := func(c *Context) error {
		got.command, got.c, got.words = c.Command.Name, c, c.Args().Slice()
		return nil
	}
	var cron string
	list := []*Command{
		{Name: "enqueue", Action: action, Flags: []Flag{
			Text(&got.queue, "queue q", "NAME", ""), Int(&got.priority, "priority p", "N", "", -1<<31),
			Values(&got.env, "env e", "NAME=VALUE", "", One(func(s string) (string, error) { return s, nil })),
			Duration(&got.in, "in", ""), Values(&got.after, "after", "IDS", "", taskspec.ParseIDs),
		}},
		{Name: "show", Aliases: []string{"sh"}, Action: action, Flags: append(got.selection.Options(a), Bool(&got.follow, "follow f", ""),
			Int(&got.rows, "rows n", "N", "", 0))},
		{Name: "work", Action: action, Flags: FromEnvironment([]Flag{
			Int(&got.concurrency, "concurrency c", "N", "", 1), Values(&got.queues, "queue q", "NAME", "", One(ParseQueue)),
			Duration(&got.every, "write-every", ""), Bool(&got.tee, "tee", ""),
		})},
		{Name: "schedule", Subcommands: []*Command{
			{Name: "add", Action: action, Flags: []Flag{Text(&cron, "cron", "EXPR", "")}},
		}},
	}
	globals := a.GlobalOptions()
	line, err := Parse(list, globals, args, func(name string) string { return env[name] })
	if err != nil || line.Command == nil {
		return got, err
	}
	err = line.run(context.Background())
	return got, err
}

func TestOptionsMayStandAnywhere(t *testing.T) {
	for _, line := range []string{"show 42 --json", "--json show 42", "show --json 42", "sh --json=true 42",
		"show --json --db x 42 -n 3 --db y"} {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil || got.command != "show" || !slices.Equal(got.words, []string{"42"}) || !got.c.IsSet("json") {
			t.Errorf("%s: got error %v, words %q, json %v; want none, 42, true", line, err, got.words, got.c.IsSet("json"))
		}
	}
}

// TestWordsAfterProgramBelongToItsCommand checks that "--" and the words after
// it stay in place. urfave/cli moves and loses them; see its issue #1424.
func TestWordsAfterProgramBelongToItsCommand(t *testing.T) {
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
		if got.c != nil && strings.Contains(line, "media") && got.queue != "media" {
			t.Errorf("%s: got queue %q, want media", line, got.queue)
		}
	}
}

func TestOptionValuesAreNotSplit(t *testing.T) {
	got, err := parse(t, nil, "enqueue", "-e", "A=1,2", "--env", "B= x", "-e=C=", "-p", "1", "-p", "-5",
		"--after", "3,4", "--after=9", "--in", "1h30m", "x", "", "\n")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "env", got.env, []string{"A=1,2", "B= x", "C="})
	testkit.Equal(t, "priority", got.priority, -5)
	testkit.Equal(t, "ids", got.after, []int64{3, 4, 9})
	testkit.Equal(t, "in", got.in, 90*time.Minute)
	testkit.Equal(t, "in is set", got.c.IsSet("in"), true)
	testkit.Equal(t, "queue is set", got.c.IsSet("queue"), false)
	testkit.Equal(t, "words", got.words, []string{"x", "", "\n"})
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"RUNNER_CONCURRENCY": "8", "RUNNER_QUEUE": "a,b", "RUNNER_WRITE_EVERY": "", "RUNNER_TEE": "1",
		"RUNNER_BUSY_TIMEOUT": "3s", "RUNNER_ROWS": "7", "RUNNER_IN": "5m"}
	got, err := parse(t, env, "work")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "concurrency", got.concurrency, 8)
	testkit.Equal(t, "queues", got.queues, []string{"a", "b"})
	testkit.Equal(t, "busy timeout", got.app.BusyTimeout, 3*time.Second)
	testkit.Equal(t, "tee", got.tee, true)
	testkit.Equal(t, "write every is set", got.c.IsSet("write-every"), false)
	// An option overrides its environment variable. The option may stand before
	// or after the name of the command.
	for _, line := range []string{"--busy-timeout 1s work -c 2 -q z", "work --busy-timeout 1s -c 9 -q z -c 2"} {
		got, err = parse(t, env, strings.Fields(line)...)
		if err != nil || got.concurrency != 2 || got.app.BusyTimeout != time.Second ||
			!slices.Equal(got.queues, []string{"z"}) {
			t.Errorf("%s: got error %v, concurrency %d, busy timeout %v, queues %q; want none, 2, 1s, z", line, err,
				got.concurrency, got.app.BusyTimeout, got.queues)
		}
	}
	got, err = parse(t, env, "show")
	testkit.NoError(t, err)
	testkit.Equal(t, "rows of show", got.rows, 30)
	_, err = parse(t, map[string]string{"RUNNER_WRITE_EVERY": "5"}, "work")
	testkit.ErrorContains(t, err, "$RUNNER_WRITE_EVERY")
}

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct{ line, what, try string }{
		{"enqeue", `unknown command "enqeue"`, "runner enqueue"},
		{"hsow", `unknown command "hsow"`, "runner show"},
		{"kill 4", `unknown command "kill"`, "runner cancel ID"},
		{"xyzzy", `unknown command "xyzzy"`, "runner --help"},
		{"shows", `unknown command "shows"`, "runner show"},
		{"schedule", "schedule needs a command", "runner schedule --help"},
		{"schedule ad", `unknown command "schedule ad"`, "runner schedule add"},
		{"-q x show", "unknown option -q before the command", "runner --help"},
		{"--queue x show", "unknown option --queue before the command", "runner --help"},
		{"show --qeue x", "unknown option --qeue of runner show", "--queue"},
		{"show -queue x", "unknown option -queue of runner show", "--queue"},
		{"show -Z", "unknown option -Z of runner show", "runner show --help"},
		{"show -n", "-n needs a value: --rows N", ""},
		{"show -n x", `--rows "x": invalid whole number`, ""},
		{"show -n -1", `--rows "-1": too small; use 0 or more`, ""},
		{"show --follow=x", `--follow "x": invalid value; use true or false`, ""},
		{"show -s foo", `--state "foo": unknown state "foo"`, ""},
		{"show -q a/b", `--queue "a/b": invalid queue name`, ""},
		{"enqueue --in 5 x", `--in "5": missing unit; use 250ms, 10s, 5m, 2h, 1d or 1w`, ""},
		{"enqueue --after x y", `--after "x": invalid task id; use 41 or 41,42`, ""},
		{"show --color blue", `--color "blue": invalid value; use one of auto, always, never`, ""},
		{"show a\xff", `argument 2, "a\xff", is not UTF-8`, ""},
		{"show --label \x00", `--label "\x00": holds a NUL byte`, ""},
	} {
		_, err := parse(t, nil, strings.Fields(test.line)...)
		f := ui.Explain(err)
		testkit.Equal(t, test.line+": exit status", ui.ExitCode(err), 2)
		testkit.Equal(t, test.line+": code", f.Code, "usage")
		testkit.Equal(t, test.line+": try", f.Try, test.try)
		if !strings.HasPrefix(f.What, test.what) {
			t.Errorf("%s: got error %q, want one that begins with %q", test.line, f.What, test.what)
		}
		if n := strings.Count(f.Text(false), "\n"); n > 3 {
			t.Errorf("%s: got an error of %d lines, want at most 3", test.line, n)
		}
	}
}

func TestSelection(t *testing.T) {
	read := func(line string) (Selection, error) {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		err = got.selection.Read(got.c, got.app)
		return got.selection, err
	}
	s, err := read("show 41 43,42 -n 1 41")
	testkit.NoError(t, err)
	testkit.Equal(t, "ids of the filter", s.Filter.IDs, []int64{41, 43, 42})
	testkit.Equal(t, "empty", s.isEmpty, false)
	s, err = read("show -q a -q b -s failed,unfinished -s completed --older-than 1h --since 2h")
	testkit.NoError(t, err)
	testkit.Equal(t, "queues of the filter", s.Filter.Queues, []string{"a", "b"})
	testkit.Len(t, "states of the filter", s.Filter.States, 7)
	testkit.Equal(t, "empty", s.isEmpty, false)
	testkit.Equal(t, "finished before", s.Filter.FinishedBefore.Unix(), 1_800_000_000-3600)
	testkit.Equal(t, "since", s.Filter.Since.Unix(), 1_800_000_000-7200)
	s, err = read("show")
	testkit.NoError(t, err)
	testkit.Equal(t, "empty", s.isEmpty, true)
	testkit.Equal(t, "exit status", ui.ExitCode(s.Require("cancel")), 2)
	s, err = read("show --all")
	testkit.NoError(t, err)
	testkit.Equal(t, "empty", s.isEmpty, false)
	testkit.Equal(t, "all", s.All, true)
	for _, line := range []string{"show 4 -q x", "show 4 --all", "show --all -q x", "show x", "show 0", "show 4,"} {
		_, err := read(line)
		testkit.Equal(t, line+": exit status", ui.ExitCode(err), 2)
	}
}

func FuzzArgumentOrder(f *testing.F) {
	f.Add("show\x0142\x01--json\x01-n\x015")
	f.Add("enqueue\x01-p\x01-5\x01--\x01--\x01-")
	f.Add("--db\x01--\x01schedule\x01add\x01x\x01--cron=\x01y")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x01")
		got, err := parse(t, nil, args...)
		if err != nil && ui.ExitCode(err) != 2 {
			t.Fatalf("%q: got error %v, want none or exit status 2", args, err)
		}
		for _, word := range got.words {
			if !slices.Contains(args, word) {
				t.Fatalf("%q: got the word %q, want only words of the input", args, word)
			}
		}
		if err == nil && got.command == "enqueue" && len(got.words) > 0 && !slices.Equal(got.words, args[len(args)-len(got.words):]) {
			t.Fatalf("%q: got the words %q, want the last words of the input", args, got.words)
		}
	})
}

func TestLettersCombine(t *testing.T) {
	for _, line := range []string{"show -fn5 -qa 1", "show -fqa -n 5 1", "show -fn 5 -q=a 1", "show -f -n=5 -q a 1",
		"show -f=true -n5 -qa 1"} {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil {
			t.Errorf("%s: got %v; want no error", line, err)
			continue
		}
		follow, rows, queues := got.follow, got.rows, got.selection.Filter.Queues
		if !follow || rows != 5 || !slices.Equal(queues, []string{"a"}) || !slices.Equal(got.words, []string{"1"}) {
			t.Errorf("%s: got follow %v, rows %d, queues %q, words %q; want true, 5, a, 1", line, follow, rows, queues, got.words)
		}
	}
	for line, want := range map[string]string{"enqueue -p-1 -qmedia=2 -eA=B -- true": "-1 media=2 A=B",
		"enqueue -p=-1 -qq -eé x": "-1 q é"} {
		got, err := parse(t, nil, strings.Fields(line)...)
		if err != nil {
			t.Errorf("%s: got %v; want no error", line, err)
			continue
		}
		priority, queue, env := got.priority, got.queue, got.env
		if text := fmt.Sprint(priority, " ", queue, " ", strings.Join(env, " ")); text != want {
			t.Errorf("%s: got %s; want %s", line, text, want)
		}
	}
	for line, want := range map[string]string{"show -queue a": "--queue", "show -follow": "--follow", "show -fx": "runner show --help",
		"show -f-n": "runner show --help", "show -é": "runner show --help", "show -limit 5": "--rows"} {
		_, err := parse(t, nil, strings.Fields(line)...)
		if got := ui.Explain(err); got.Exit != 2 || got.Try != want {
			t.Errorf("%s: got %v and the hint %q; want a usage error and %q", line, got, got.Try, want)
		}
	}
}

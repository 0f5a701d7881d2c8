package main

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// checkWindow implements the script command "window N DURATION". The stdout of
// the previous command must have one time per line. The command fails if there
// is a period of length DURATION with more than N of these times.
func checkWindow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: window N DURATION")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	within, err := time.ParseDuration(args[1])
	ts.Check(err)
	var times []time.Time
	for line := range strings.FieldsSeq(ts.ReadFile("stdout")) {
		at, err := time.Parse(time.RFC3339Nano, line)
		ts.Check(err)
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	if len(times) <= most {
		ts.Fatalf("got %d times, want more than %d", len(times), most)
	}
	for i, at := range times[:len(times)-most] {
		if gone := times[i+most].Sub(at); gone < within {
			ts.Fatalf("got %d starts within %v from %v, want at most %d", most+1, gone, at, most)
		}
	}
}

// useGo implements the script command "usego". After it, the script can run the
// go command, which then uses the build cache of this test.
func useGo(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range []string{"GOROOT", "GOCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		ts.Check(err)
		ts.Setenv(name, strings.TrimSpace(string(value)))
	}
}

// checkOrder implements the script command "order IDS ID". It checks that task
// ID started after all tasks in IDS had finished.
func checkOrder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: order IDS ID")
	}
	times := func(key, ids string) (list []time.Time) {
		ts.Check(ts.Exec("runner", append([]string{"list", "--format", "{{." + key + "}}"}, strings.Split(ids, ",")...)...))
		for line := range strings.FieldsSeq(ts.ReadFile("stdout")) {
			at, err := time.Parse(time.RFC3339Nano, line)
			ts.Check(err)
			list = append(list, at)
		}
		return list
	}
	started := times("started_at", args[1])[0]
	for _, finished := range times("finished_at", args[0]) {
		if finished.After(started) {
			ts.Fatalf("got a start of task %s at %v, want it after the end of all of %s at %v", args[1], started, args[0], finished)
		}
	}
}

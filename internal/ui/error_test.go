package ui_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/runner/internal/errcode"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestFailuresAreExplained(t *testing.T) {
	locked := errors.New("database is locked (5) (SQLITE_BUSY)")
	busy := &jobs.Error{Kind: jobs.ErrBusy, What: "database is busy: /x/runner.db", Why: []string{"held for 10s (pid 4411)"}, Hint: "again",
		Err: fmt.Errorf("insert task: %w", locked)}
	for _, test := range []struct {
		err  error
		exit int
		text string
	}{
		{ui.Usage("bad \x1b").Because("so").Hint("better"), 2, "runner: bad \\x1b\n  so\n  try: better\n"},
		{fmt.Errorf("enqueue: %w", busy), 75, "runner: database is busy: /x/runner.db\n  held for 10s (pid 4411)\n  try: again\n"},
		{fmt.Errorf("begin: %w", locked), 1, "runner: begin: database is busy (5) (SQLITE_BUSY)\n"},
		{&jobs.FieldError{Field: "max_attempts", Msg: "0 is out of range"}, 2, "runner: --max-attempts: 0 is out of range\n"},
		{&jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, What: "no task 9999"}, 3, "runner: no task 9999\n  try: runner list\n"},
		{&jobs.Error{Kind: jobs.ErrNoDatabase, What: "no database at /x"}, 1, "runner: no database at /x\n"},
		{&jobs.Error{Kind: jobs.ErrFull, What: "disk is full"}, 75, "runner: disk is full\n"},
		{ui.ExitStatus(7), 7, ""},
		{ui.WhileWaiting(busy), 125, "runner: database is busy: /x/runner.db\n  held for 10s (pid 4411)\n  try: again\n"},
		{ui.WhileWaiting(ui.Usage("bad")), 2, "runner: bad\n"},
		{ui.WhileWaiting(&ui.Error{Code: "start", Exit: 127, What: "not found"}), 127, "runner: not found\n"},
		{ui.WhileWaiting(ui.ExitStatus(3)), 3, ""},
		{nil, 0, ""},
	} {
		p, _, talk := termtest.Printer(0)
		if ui.Report(p, test.err); talk.String() != test.text || ui.ExitCode(test.err) != test.exit {
			t.Errorf("%v: got exit status %d and\n%s\nwant %d and\n%s", test.err, ui.ExitCode(test.err), talk, test.exit, test.text)
		}
	}
	p, _, talk := termtest.Printer(0)
	p.Verbose = true
	ui.Report(p, busy)
	testkit.Contains(t, talk.String(), "cause: insert task: database is busy")
	testkit.ContainsNone(t, talk.String(), "locked")
	p, _, talk = termtest.Printer(0)
	p.JSON = true
	ui.Report(p, &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, What: "no task 9999"})
	want := `{"error":{"code":"not_found","message":"no task 9999","why":null,"try":"runner list","exit":3}}` + "\n"
	testkit.Equal(t, "stderr", talk.String(), want)
}

package output

import (
	"strings"
	"testing"

	"example.com/runner/db"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

func chunks(texts ...string) []admin.Chunk {
	list := make([]admin.Chunk, len(texts))
	for i, text := range texts {
		list[i] = admin.Chunk{TaskID: 7, Seq: int64(i + 1), Stream: "stdout", Data: []byte(text)}
	}
	return list
}

func TestTailOf(t *testing.T) {
	for _, test := range []struct {
		pieces []string
		n      int
		want   string
		enough bool
	}{
		{[]string{"a\nb\nc\n"}, 2, "b\nc\n", true},
		{[]string{"a\nb\nc"}, 2, "b\nc", true},
		{[]string{"a\nb\nc\n"}, 3, "a\nb\nc\n", false}, // the result "enough" is false, because line a may begin in an earlier piece
		{[]string{"a\n", "b", "\n", "c\n"}, 2, "b\nc\n", true},
		{[]string{"a\nb", "b\n"}, 1, "bb\n", true},
		{[]string{"a\n", "b\n"}, 1, "b\n", true},
		{[]string{"\n\n\n"}, 2, "\n\n", true},
		{[]string{"abc"}, 1, "abc", false},
		{[]string{"abc"}, 0, "", true},
		{nil, 5, "", false},
	} {
		pieces := chunks(test.pieces...)
		last, enough := db.LastLines(pieces, test.n)
		var got strings.Builder
		for _, c := range last {
			if len(c.Data) == 0 {
				t.Errorf("%q: got an empty piece, want only pieces with text", test.pieces)
			}
			got.Write(c.Data)
		}
		testkit.Equal(t, "text", got.String(), test.want)
		testkit.Equal(t, "enough", enough, test.enough)
		for i, c := range pieces {
			testkit.Equal(t, "data", string(c.Data), test.pieces[i])
		}
	}
}

func TestLogPrinterPrefixesLines(t *testing.T) {
	p, out, talk := termtest.Printer(0)
	s := &LogPrinter{P: p, Named: true}
	task, other := jobs.Task{ID: 7, Options: jobs.Options{Settings: command.Settings{OutputLimit: 1 << 20}}}, jobs.Task{ID: 8}
	piece := func(task jobs.Task, stream admin.Stream, text string, missing int64) {
		t.Helper()
		if err := s.piece(task, admin.Chunk{TaskID: task.ID, Stream: stream, Data: []byte(text)}, missing); err != nil {
			t.Fatal(err)
		}
	}
	piece(task, "stdout", "half", 0)
	piece(other, "stdout", "other\n", 0)
	piece(task, "stderr", "error\nmore", 0)
	piece(task, "stdout", " a line\n\nnext", 0)
	piece(task, "stdout", "tail\n", 12_897_484)
	piece(task, "stdout", "begun", unknown)
	if err := s.end(task, admin.Attempt{OutputBytes: 100}, 100, false); err != nil {
		t.Fatal(err)
	}
	piece(other, "stdout", strings.Repeat("x", 64<<10)+"y", 0)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	want := "[8] other\n[7] half a line\n[7] \n[7] next\n[7] tail\n[7] begun\n[8] " + strings.Repeat("x", 64<<10) + "y\n"
	if out.String() != want {
		t.Errorf("stdout\n%.300s\nwant\n%.300s", out, want)
	}
	if want := "[7] error\n[7] more\n[7] --- 13 MB not kept (--output-limit) ---\n[7] --- some output not kept " +
		"(--output-limit) ---\n"; talk.String() != want {
		t.Errorf("stderr\n%s\nwant\n%s", talk, want)
	}
}

// TestLogPrinterCountsMissingBytes checks that the printer prints each byte or
// reports it as missing.
func TestLogPrinterCountsMissingBytes(t *testing.T) {
	p, out, talk := termtest.Printer(0)
	s := &LogPrinter{P: p}
	task := jobs.Task{ID: 7, Options: jobs.Options{Settings: command.Settings{OutputLimit: 20}}}
	f := Cursor{Range: Range{Lines: -1}}
	show := func(seq, dropped int64, text string) {
		t.Helper()
		if err := f.show(task, admin.Chunk{TaskID: 7, Seq: seq, Stream: "stdout", Data: []byte(text), DroppedBytes: dropped},
			s); err != nil {
			t.Fatal(err)
		}
	}
	show(1, 0, "0123456789") // start of the output, which the worker always keeps
	show(2, 0, "abcde")      // the worker drops this piece later
	show(4, 12, "vwxyz")     // the worker dropped pieces 2 and 3, which have 12 bytes; the 5 bytes of piece 2 are printed already
	show(5, 12, "end")       // DroppedBytes is 12 as for the piece before, so nothing is missing between the two
	p.Flush()
	testkit.Equal(t, "stdout", out.String(), "0123456789abcdevwxyzend")
	testkit.Equal(t, "stderr", talk.String(), "--- 7 B not kept (--output-limit 20) ---\n")
}

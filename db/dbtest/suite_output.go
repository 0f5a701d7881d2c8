package dbtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func chunk(seq int64, stream db.Stream, data string) db.Chunk {
	return db.Chunk{Seq: seq, Stream: stream, At: start.Add(time.Duration(seq) * time.Millisecond), Data: []byte(data)}
}

func chunks(first, last int64) (list []db.Chunk) {
	for seq := first; seq <= last; seq++ {
		list = append(list, chunk(seq, "stdout", fmt.Sprintf("%d;", seq)))
	}
	return list
}

func textOf(list []db.Chunk) string {
	var text strings.Builder
	for _, c := range list {
		text.Write(c.Data)
	}
	return text.String()
}

func (s *store) output(task jobs.Task) []db.Chunk {
	s.Helper()
	return must(s.Output(s.Context(), claimsOf(task)[0], 0, 1000))(s)
}

func (s *store) write(w *db.Worker, task jobs.Task, out db.Output) {
	s.Helper()
	if err := w.WriteOutput(s.Context(), task, out); err != nil {
		s.Fatal(err)
	}
}

// runningTask adds a task and claims it.
func (s *store) runningTask() (*db.Worker, jobs.Task) {
	s.Helper()
	s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{})))
	w := s.worker()
	return w, s.claimOnly(w)
}

var outputs = group{
	"output is read back in order and unchanged": func(s *store) {
		w, claimed := s.runningTask()
		want := []db.Chunk{chunk(1, "stdout", "a\n"), chunk(2, "stderr", "\x00\xff"), chunk(4, "stdout", "c")}
		want[2].DroppedBytes = 77
		s.write(w, claimed, db.Output{Add: want[:2]})
		s.write(w, claimed, db.Output{Add: want[2:]})
		got := s.output(claimed)
		for i := range want {
			want[i].TaskID, want[i].GenerationID, want[i].Attempt = claimed.ID, claimed.GenerationID, claimed.Attempt
			if g, w := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]); g != w {
				s.Errorf("got %s\nwant %s", g, w)
			}
		}

		if len(got) != 3 {
			s.Errorf("got %d chunks, want 3", len(got))
		}
	},
	"a page begins after a given chunk, and the last chunks come in order": func(s *store) {
		w, claimed := s.runningTask()
		s.write(w, claimed, db.Output{Add: chunks(1, 9)})
		claim := claimsOf(claimed)[0]
		if got := textOf(must(s.Output(s.Context(), claim, 3, 2))(s)); got != "4;5;" {
			s.Errorf(`got %q, want "4;5;"`, got)
		}
		if got := textOf(must(s.OutputBefore(s.Context(), claim, math.MaxInt64, 3))(s)); got != "7;8;9;" {
			s.Errorf(`got %q, want "7;8;9;"`, got)
		}
		if got := textOf(must(s.OutputBefore(s.Context(), claim, 7, 2))(s)); got != "5;6;" {
			s.Errorf(`before chunk 7: got %q, want "5;6;"`, got)
		}
		if got := must(s.Output(s.Context(), claim, 9, 2))(s); len(got) != 0 {
			s.Errorf("got %v, want none", got)
		}

		claim.GenerationID++
		if got := must(s.Output(s.Context(), claim, 0, 9))(s); len(got) != 0 {
			s.Errorf("got output %q of another attempt, want none", textOf(got))
		}
	},
	"writing a chunk twice changes nothing": func(s *store) {
		w, claimed := s.runningTask()
		for range 2 {
			s.write(w, claimed, db.Output{Add: chunks(1, 3)})
		}
		if got := textOf(s.output(claimed)); got != "1;2;3;" {
			s.Errorf(`got %q, want "1;2;3;"`, got)
		}
	},
	"a range of chunks is deleted, without its end": func(s *store) {
		w, claimed := s.runningTask()
		s.write(w, claimed, db.Output{Add: chunks(1, 9)})
		s.write(w, claimed, db.Output{Delete: db.Pieces{From: 3, To: 6}})
		if got := textOf(s.output(claimed)); got != "1;2;6;7;8;9;" {
			s.Errorf(`got %q, want "1;2;6;7;8;9;"`, got)
		}

		s.write(w, claimed, db.Output{Delete: db.Pieces{From: 6, To: 6}})
		s.write(w, claimed, db.Output{Delete: db.Pieces{From: 9, To: 6}})
		if got := textOf(s.output(claimed)); got != "1;2;6;7;8;9;" {
			s.Errorf(`got %q, want "1;2;6;7;8;9;"`, got)
		}
	},
	"a finish stores, deletes and cuts output": func(s *store) {
		w, claimed := s.runningTask()
		s.write(w, claimed, db.Output{Add: chunks(1, 5)})
		s.finishAll(w, db.Finish{Task: claimed, Outcome: s.withTimes(claimed, taskspec.Outcome{OutputBytes: 12, OutputTruncated: true}),
			Output: db.Output{Add: []db.Chunk{chunk(6, "stderr", "six")}, Delete: db.Pieces{From: 2, To: 4},
				Cut: db.Cut{Seq: 4, Skip: 1, Dropped: 5}}})
		got := s.output(claimed)
		if text := textOf(got); text != "1;;5;six" || got[1].DroppedBytes != 5 || got[3].Stream != "stderr" {
			s.Errorf(`got text %q of chunks %+v; want "1;;5;six", 5 bytes dropped in the second chunk, stream stderr in the fourth`,
				text, got)
		}
		if task := s.get(claimed.ID); task.OutputBytes != 12 || !task.OutputTruncated {
			s.Errorf("got output bytes %v, output truncated %v; want 12, true", task.OutputBytes, task.OutputTruncated)
		}
	},
	"a chunk may be empty or be cut to nothing": func(s *store) {
		w, claimed := s.runningTask()
		s.write(w, claimed, db.Output{Add: []db.Chunk{chunk(1, "stdout", ""), chunk(2, "stdout", "abc")}})
		s.write(w, claimed, db.Output{Cut: db.Cut{Seq: 2, Skip: 3, Dropped: 3}})
		if got := s.output(claimed); len(got) != 2 || textOf(got) != "" || got[1].DroppedBytes != 3 {
			s.Errorf("got chunks %+v, want two without text, and 3 bytes dropped in the second", got)
		}
	},
	"an attempt that lost its task writes no output": func(s *store) {
		w, claimed := s.runningTask()
		s.write(w, claimed, db.Output{Add: chunks(1, 3)})
		reaper := s.worker()
		s.reap(reaper, s.leases(reaper)...)
		for name, out := range map[string]db.Output{"add": {Add: chunks(4, 5)},
			"replace": {Add: []db.Chunk{chunk(1, "stdout", "changed")}},
			"delete":  {Delete: db.Pieces{From: 1, To: 3}}, "cut": {Cut: db.Cut{Seq: 1, Skip: 1}}} {
			if err := w.WriteOutput(s.Context(), claimed, out); !errors.Is(err, jobs.ErrLost) {
				s.Errorf("%s: got %v, want error %v", name, err, jobs.ErrLost)
			}
		}

		s.finishAll(w, db.Finish{Task: claimed, Outcome: s.withTimes(claimed, taskspec.Outcome{}), Output: db.Output{Add: chunks(4, 5)}})
		if got := textOf(s.output(claimed)); got != "1;2;3;" {
			s.Errorf(`got %q, want "1;2;3;"`, got)
		}
	},
	"each attempt has its own output": func(s *store) {
		w, first := s.runningTask()
		s.write(w, first, db.Output{Add: chunks(1, 2)})
		s.finish(w, first, failed)
		second := s.claimOnly(w)
		s.write(w, second, db.Output{Add: chunks(1, 4)})
		if a, b := textOf(s.output(first)), textOf(s.output(second)); a != "1;2;" || b != "1;2;3;4;" {
			s.Errorf(`got a %q, b %q; want "1;2;", "1;2;3;4;"`, a, b)
		}
	},
}

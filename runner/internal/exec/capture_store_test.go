package exec

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// rows are the stored pieces of an output, by their numbers.
type rows map[int64]db.Chunk

func (r rows) WriteOutput(_ context.Context, _ jobs.Task, out db.Output) error {
	time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
	if rand.IntN(4) == 0 {
		return errors.New("disk full")
	}
	r.apply(out)
	return nil
}

func (r rows) apply(out db.Output) {
	for seq := range r {
		if seq >= out.Delete.From && seq < out.Delete.To {
			delete(r, seq)
		}
	}
	for _, chunk := range out.Add {
		chunk.Data = slices.Clone(chunk.Data)
		r[chunk.Seq] = chunk
	}
	if first, ok := r[out.Cut.Seq]; ok {
		first.Data = first.Data[out.Cut.Skip:]
		r[out.Cut.Seq] = first
	}
}

func (r rows) text() (text []byte) {
	for seq := range int64(1 << 20) {
		text = append(text, r[seq].Data...)
	}
	return text
}

// TestFirstAndLastBytesAreStored captures random output while some of the
// writes fail and the command prints during others.
func TestFirstAndLastBytesAreStored(t *testing.T) {
	for _, limit := range []int64{0, 10, 5000, 200_000} {
		synctest.Test(t, func(t *testing.T) {
			stored := rows{}
			task := jobs.Task{Options: jobs.Options{Settings: command.Settings{OutputLimit: limit}}}
			c := NewCapture(task, stored, slog.New(slog.DiscardHandler))
			var printed []byte
			for range 300 {
				line := bytes.Repeat([]byte{byte('a' + rand.IntN(26))}, 1+rand.IntN(2000))
				printed = append(printed, line...)
				c.Write([]string{"stdout", "stderr"}[rand.IntN(2)], line)
				time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			}
			c.Close()
			stored.apply(c.Rest())

			head := min(taskspec.HeadSize(limit), int64(len(printed)))
			tail := min(limit-head, int64(len(printed))-head)
			want := slices.Concat(printed[:head], printed[int64(len(printed))-tail:])
			if got := stored.text(); !bytes.Equal(got, want) {
				t.Errorf("limit %d: got %d bytes stored, want the first %d and the last %d", limit, len(got), head, tail)
			}
			total, truncated := c.Sizes()
			if total != int64(len(printed)) || truncated != (int64(len(want)) < total) {
				t.Errorf("limit %d: got sizes %d, %v; want %d, %v", limit, total, truncated, len(printed), !truncated)
			}
		})
	}
}

package db

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// insertOutput stores a chunk of output of the attempt that claimed task [1] as
// generation [2], if that claim is still running. It's idempotent: a caller can
// repeat it after an error, even if its transaction was committed.
var insertOutput = command(`INSERT INTO {output} (task_id, generation_id, seq, attempt, stream, at, data, dropped_bytes)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE EXISTS (SELECT 1 FROM {tasks} WHERE id = ?1 AND generation_id = ?2 AND state = 'running')
` + replaceOutput)

// insertLastOutput is insertOutput in the transaction that has just finished
// the attempt.
var insertLastOutput = command(`INSERT INTO {output} (task_id, generation_id, seq, attempt, stream, at, data, dropped_bytes)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)
` + replaceOutput)

const replaceOutput = `ON CONFLICT (task_id, generation_id, seq) DO UPDATE SET attempt = excluded.attempt,
	stream = excluded.stream, at = excluded.at,
	data = excluded.data, dropped_bytes = excluded.dropped_bytes`

var selectRunning = query(`SELECT EXISTS (SELECT 1 FROM {tasks} WHERE id = ? AND generation_id = ? AND state = 'running')`)

var deleteOutput = command(`DELETE FROM {output} WHERE task_id = ? AND generation_id = ? AND seq >= ? AND seq < ?`)

// cutOutput deletes the first [1] bytes of a chunk. [2] is how many bytes of
// output before its rest are deleted in all.
var cutOutput = command(`UPDATE {output} SET data = substr(data, ? + 1), dropped_bytes = ? WHERE task_id = ? AND generation_id = ?
	AND seq = ?`)

const outputColumns = `task_id AS taskid, generation_id AS generationid, seq, attempt, stream, at, data,
	dropped_bytes AS droppedbytes FROM {output}`

// selectOutput lists up to [4] chunks of task [1], generation [2], after chunk
// [3].
var selectOutput = query(`SELECT ` + outputColumns + `
WHERE task_id = ? AND generation_id = ? AND seq > ? ORDER BY seq LIMIT 0 + ?`)

// selectLastOutput lists the last [4] chunks of task [1], generation [2],
// before chunk [3], newest first.
var selectLastOutput = query(`SELECT ` + outputColumns + `
WHERE task_id = ? AND generation_id = ? AND seq < ? ORDER BY seq DESC LIMIT 0 + ?`)

// Chunk is a part of the output of an attempt, in the order in which it was
// printed.
type Chunk struct {
	TaskID       int64
	Attempt      int
	GenerationID int64
	Seq          int64
	Stream       Stream
	At           time.Time
	Data         []byte
	DroppedBytes int64 // number of bytes between the previous chunk and this one that were not stored
}

// Stream is where a Chunk was printed.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Output is a change to the stored output of an attempt.
type Output struct {
	Add    []Chunk
	Delete Pieces // chunks to delete
	Cut    Cut    // bytes to cut from the first chunk that is kept
}

// Pieces is the range of chunks from From up to, but not including, To.
type Pieces struct{ From, To int64 }

// Cut deletes the first Skip bytes of chunk Seq. If Seq is 0, it deletes
// nothing.
type Cut struct {
	Seq     int64
	Skip    int64
	Dropped int64 // bytes of output before the rest of this chunk that are deleted in all
}

var streams = [...]Stream{1: Stdout, 2: Stderr}

func streamNumber(s Stream) int64 {
	if s == Stderr {
		return 2
	}
	return 1
}

// output makes the last change to the output of an attempt, in the transaction
// that has finished it.
func (t *tx) output(task jobs.Task, out Output) error {
	_, err := t.writeOutput(insertLastOutput, task, out)
	return err
}

func (t *tx) writeOutput(insert *statement, task jobs.Task, out Output) (fenced bool, err error) {
	for _, c := range out.Add {
		n, err := t.exec(insert, task.ID, task.GenerationID, c.Seq, int64(task.Attempt), streamNumber(c.Stream), c.At.UnixMilli(), c.Data,
			c.DroppedBytes)
		if err != nil || n == 0 {
			return n == 0, err
		}
	}

	// without a new chunk, no INSERT has checked whether the claim is still
	// running
	if len(out.Add) == 0 && insert == insertOutput {
		var running bool
		if err := t.scan(selectRunning, []any{task.ID, task.GenerationID}, &running); err != nil || !running {
			return !running, err
		}
	}
	if out.Delete.To > out.Delete.From {
		if err := t.run(deleteOutput, task.ID, task.GenerationID, out.Delete.From, out.Delete.To); err != nil {
			return false, err
		}
	}
	if out.Cut.Seq != 0 {
		err = t.run(cutOutput, out.Cut.Skip, out.Cut.Dropped, task.ID, task.GenerationID, out.Cut.Seq)
	}

	return false, err
}

// WriteOutput changes the stored output of a running attempt. It returns
// jobs.ErrLost if the attempt no longer owns its task.
func (w *Worker) WriteOutput(ctx context.Context, task jobs.Task, out Output) error {
	return w.db.update(ctx, normal, func(t *tx) error {
		fenced, err := t.writeOutput(insertOutput, task, out)
		if err == nil && fenced {
			err = fmt.Errorf("output of task %d: %w", task.ID, jobs.ErrLost)
		}
		return err
	})
}

// Output returns at most limit chunks of an attempt's output after chunk seq.
// The first chunk has the number 1.
func (d *DB) Output(ctx context.Context, claim ClaimID, seq int64, limit int) ([]Chunk, error) {
	return d.output(ctx, selectOutput, claim.ID, claim.GenerationID, seq, limit)
}

// OutputBefore returns the last chunks, at most limit, before chunk seq, oldest
// first. With math.MaxInt64 they are the last of all.
func (d *DB) OutputBefore(ctx context.Context, claim ClaimID, seq int64, limit int) ([]Chunk, error) {
	chunks, err := d.output(ctx, selectLastOutput, claim.ID, claim.GenerationID, seq, limit)
	slices.Reverse(chunks)
	return chunks, err
}

func (d *DB) output(ctx context.Context, pieces *statement, args ...any) ([]Chunk, error) {
	return readAs(ctx, d, (*outputRow).chunk, pieces, args...)
}

type outputRow struct {
	Chunk
	Stream int
	At     number
}

func (r *outputRow) chunk() Chunk {
	c := r.Chunk
	c.Stream, c.At = streams[min(max(r.Stream, 1), 2)], r.At.time()
	return c
}

// LastLines returns the last n lines in a list of pieces. enough is false if
// the first of these lines may begin in an earlier piece, or if there are fewer
// than n.
func LastLines(chunks []Chunk, n int) (last []Chunk, enough bool) {
	if n == 0 {
		return nil, true
	}

	found := 0
	for i, c := range slices.Backward(chunks) {
		end := len(c.Data)
		if i == len(chunks)-1 {
			end-- // skip a final newline, because no further line begins after it
		}

		for end >= 0 {
			at := bytes.LastIndexByte(c.Data[:end], '\n')
			if at < 0 {
				break
			}
			if found++; found == n {
				last = slices.Clone(chunks[i:])
				if last[0].Data, last[0].DroppedBytes = c.Data[at+1:], 0; len(last[0].Data) == 0 {
					last = last[1:]
				}
				return last, true
			}

			end = at
		}
	}

	return chunks, false
}

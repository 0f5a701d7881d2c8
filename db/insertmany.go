package db

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// insertPlain adds tasks that need no insert of their own. They need only these
// columns, and with all columns of insertTask a batch takes a tenth longer. Up
// to sixteen tasks share a statement, which takes two thirds of the time of
// sixteen statements.
var insertPlain = &sqltext.Series{Template: `INSERT INTO {tasks} (` + plainColumns + `) VALUES {parts}{returning_id}`,
	Part: `({id_param}` + plainRest, Separator: ","}

const plainColumns = `{id_column}generation_id, state, queue, job, args, label, priority,
	run_at, expires_at, max_attempts, max_losses, options, created_at, created_by, updated_at, batch`

const plainRest = `1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// startBatch makes task [2] the first of batch [1], which has its id. The same
// transaction has added the task, so its generation needs no check.
var startBatch = command(`UPDATE {tasks} SET batch = ? WHERE id = ?`)

// insertArrays is insertPlain for any number of tasks in one statement. Each
// value is an array with one column of the tasks, in the order of appendPlain.
// It's for engines with the trait InsertsArrays, where each statement is a
// round trip, and a thousand rows of parameters take long to bind.
var insertArrays = command(`INSERT INTO {tasks} (` + plainColumns + `) SELECT 1, {plain_arrays}{returning_id}`)

const (
	maxRowsPerInsert = 16      // tasks in one insertPlain, a power of two; with more it isn't faster
	plainValues      = 16      // values of a task
	maxWaitingBytes  = 1 << 20 // total size of the arguments of the tasks that wait in an inserter
)

// inserter adds the tasks of all callers that share a transaction, in the order
// of the calls. Plain tasks wait in it until flush adds them together.
type inserter struct {
	t     *tx
	limit int             // how many tasks may wait for flush
	ids   []int64         // of the added tasks; only flush uses this field
	batch int64           // batch that the current call has begun, or 0
	from  int             // index in added of the first task of the call that began the batch
	added []jobs.Enqueued // results of all calls; the tasks that wait have no id yet
	waits []any           // values of the tasks that flush will write
	bytes int             // total size of the arguments of the tasks that wait
	task  jobs.Task       // for add only; a local variable there would cost an allocation per task
}

// inserter returns the inserter of the transaction, which is flushed before the
// commit.
func (t *tx) inserter() *inserter {
	if t.inserts == nil {
		t.inserts = &inserter{t: t, limit: t.db.traits.InsertMost}
	}
	return t.inserts
}

// plainValues is the number of values in a row of insertPlain, one less on a
// server, which assigns the id.
func (t *tx) plainValues() int {
	if t.db.traits.GivesIDs {
		return plainValues - 1
	}
	return plainValues
}

// needsOwnInsert reports whether insertPlain can't add a task: its insert reads
// or changes other rows, it has a value for another column, or it begins a
// batch.
func needsOwnInsert(spec jobs.Spec) bool {
	return spec.UniqueKey != "" || spec.Unique.Args || len(spec.Input) > 0 || taskspec.Ordered(&spec) || spec.Schedule != "" ||
		!spec.Tick.IsZero() ||
		spec.Batch == jobs.NewBatch
}

// add adds a task, at once or when flush is called. from is the index in added
// of the first task of the same call.
func (in *inserter) add(spec *jobs.Spec, from int, now time.Time) error {
	if spec.Batch == jobs.NewBatch && in.batch > 0 && in.from == from {
		joins := *spec
		joins.Batch, spec = in.batch, &joins
	}
	if needsOwnInsert(*spec) {
		if err := in.flush(false); err != nil { // insertSpec may read a task that still waits in the inserter
			return err
		}
		one, err := in.t.insertSpec(spec, in.added[from:], now)
		if spec.Batch == jobs.NewBatch && !one.Kept && !one.Replaced {
			in.batch, in.from = one.ID, from
		}
		in.added = append(in.added, one)
		return err
	}
	if _, err := in.t.makeRoom(len(spec.Args), now); err != nil {
		return err
	}

	in.task = taskspec.NewTask(spec, now)
	values, err := in.t.appendID(in.waits)
	if err == nil {
		values, err = appendPlain(values, &in.task)
	}
	if err != nil {
		return err
	}

	in.waits, in.added = values, append(in.added, jobs.Enqueued{})
	in.bytes += len(in.task.Args)
	if len(in.waits) == in.limit*in.t.plainValues() || in.bytes >= maxWaitingBytes {
		return in.flush(false)
	}

	return nil
}

// flush adds the tasks that wait. last says that it's the last write of the
// transaction.
func (in *inserter) flush(last bool) error {
	if in == nil {
		return nil
	}

	each := in.t.plainValues()
	values, waiting := in.waits, in.added[len(in.added)-len(in.waits)/each:]
	in.waits, in.bytes = in.waits[:0], 0
	for len(waiting) > 0 {
		n := in.nextRows(len(waiting))
		if last && len(waiting) == n {
			in.t.commitNext()
		}

		insert, args := insertPlain.Of(min(n, maxRowsPerInsert)), values[:n*each]
		if in.t.db.traits.InsertsArrays && n > 1 {
			insert, args = insertArrays, arraysOf(args, each)
		}

		in.ids = slices.Grow(in.ids[:0], n)[:n]
		if err := in.t.insertRows(insert, in.ids, args); err != nil {
			return err
		}

		for k, id := range in.ids {
			waiting[k].ID = id
		}

		waiting, values = waiting[n:], values[n*each:]
	}

	return nil
}

// nextRows returns how many of n waiting tasks the next statement adds.
func (in *inserter) nextRows(n int) int {
	if in.t.db.traits.InsertsArrays {
		return n
	}
	return min(1<<(bits.Len(uint(n))-1), maxRowsPerInsert)
}

// arraysOf returns a PostgreSQL array for each column of the rows, which have
// each values.
func arraysOf(values []any, each int) []any {
	arrays := make([]any, each)
	var text []byte
	for column := range arrays {
		text = append(text[:0], '{')
		for i := column; i < len(values); i += each {
			if i > column {
				text = append(text, ',')
			}
			switch value := values[i].(type) {
			case string:
				text = append(append(append(text, '"'), arrayEscape.Replace(value)...), '"')
			case int64:
				text = strconv.AppendInt(text, value, 10)
			default:
				text = append(text, "NULL"...)
			}
		}

		arrays[column] = string(append(text, '}'))
	}

	return arrays
}

var arrayEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

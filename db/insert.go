package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Most tasks are plain: without dependencies, a unique key, an input or a pause
// a task needs only its own row. The plain tasks of a call, and of all callers
// of a group, share statements (insertmany.go). In a file, a single plain task
// is one statement without BEGIN and COMMIT (insertOne) if no other caller
// waits, which takes a seventh less time. Any other task is added alone by
// insertSpec, which also reads or changes other rows: the holder of the unique
// key, the lane, the dependencies, the input.
//
// Invariants:
//   - A call adds all of its tasks or none. They are durable when it returns.
//   - Within a transaction, the ids of new tasks increase in the order of the
//     specs. In a file this process computes them, because it holds the write
//     lock. A server assigns them.
//   - Tasks are added in the order of the calls in a group. So the inserter
//     adds the waiting plain tasks before it runs a statement that could read
//     them or that takes an id.
//   - A task whose dependency has already failed is stored as cancelled, with
//     all effects of an end (see afterEnd).

// insertTask adds a task of any kind. Its values are those of appendPlain, of
// settings, and of the last four columns. A new task has generation 1; one that
// plain SQL inserts has 0.
var insertTask = command(`INSERT INTO {tasks} (` + plainColumns + `, unique_key, lane, parts, waits, schedule, tick, finished_at, outcome)
	VALUES ({id_param}1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?){unless_taken}{returning_id}`)

// insertOne is insertPlain for one task, in a transaction of its own. It also
// computes the next id.
var insertOne = command(`INSERT INTO {tasks} (` + plainColumns + `) VALUES (({highest_id}) + 1, ` + plainRest)

// selectHighestID returns the highest id that a task has or had, or 0. In a
// file it ignores ids of 2^52 and more; see the trigger tasks_deleted.
var selectHighestID = query(`{highest_id}`)

var insertInput = command(`INSERT INTO {inputs} (task_id, data) VALUES (?, ?)`)

var selectInput = query(`SELECT data FROM {inputs} WHERE task_id = ?`)

var deleteInput = command(`DELETE FROM {inputs} WHERE task_id = ?`)

// Insert adds all tasks at the time now, or none, and returns when they are
// durable. The specs must be valid.
func (d *DB) Insert(ctx context.Context, specs []jobs.Spec, now time.Time) ([]jobs.Enqueued, error) {
	var of *inserter // has the tasks of all callers in the group
	var from int
	r := &request{level: full, shared: !slices.ContainsFunc(specs, needsOwnInsert), adds: true, run: func(t *tx) (err error) {
		of, from, err = t.insertAll(specs, now)
		return err
	}}
	if len(specs) == 1 && r.shared && len(specs[0].Metadata) == 0 && d.isMeasured() {
		r.single = func(t *tx) error {
			id, err := t.insertOne(&specs[0], now)
			of, from = &inserter{added: []jobs.Enqueued{{ID: id}}}, 0
			return err
		}
	}

	err := d.submit(ctx, r, false)
	if err != nil {
		return nil, err
	}

	return of.added[from : from+len(specs) : from+len(specs)], nil
}

// insertAll adds tasks through the inserter of the transaction. Their results
// are in of.added, beginning at from. Some may be added only by flush.
func (t *tx) insertAll(specs []jobs.Spec, now time.Time) (of *inserter, from int, err error) {
	of = t.inserter()
	from = len(of.added)
	for i := range specs {
		if err := of.add(&specs[i], from, now); err != nil {
			return of, from, err
		}
	}

	return of, from, nil
}

// InsertSeq is Insert for any number of tasks. It iterates over specs once,
// holding the write lock. An error from specs undoes everything and comes back
// unchanged.
func (d *DB) InsertSeq(ctx context.Context, specs iter.Seq2[jobs.Spec, error], now time.Time) ([]jobs.Enqueued, error) {
	var of *inserter
	err := d.updateAlone(ctx, full, func(t *tx) error {
		of = t.inserter()
		for spec, err := range specs {
			if err == nil {
				err = context.Cause(ctx) // ctx is checked between the rows, because no statement may be interrupted
			}
			if err != nil {
				return err
			}
			if err := of.add(&spec, 0, now); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	return of.added, nil
}

// keyTries is how often insertSpec looks for the task that has taken its unique
// key. A trigger of another program can keep a task out each time.
const keyTries = 3

// insertSpec adds one task. added has the results of the tasks before it in the
// same call.
func (t *tx) insertSpec(spec *jobs.Spec, added []jobs.Enqueued, now time.Time) (jobs.Enqueued, error) {
	for range keyTries {
		if one, err := t.insertOnce(spec, added, now); !errors.Is(err, errTaken) {
			return one, err
		}
	}
	return jobs.Enqueued{}, &jobs.Error{Kind: jobs.ErrConflict,
		What: fmt.Sprintf("cannot add a task with the unique key %q", spec.UniqueKey),
		Why:  []string{"the database keeps it out, and no task holds the key"},
		Hint: "look for a trigger of another program on the table tasks"}
}

// insertOnce tries to add one task. It returns errTaken if another task has
// taken the unique key meanwhile: the next try finds that task.
func (t *tx) insertOnce(spec *jobs.Spec, added []jobs.Enqueued, now time.Time) (jobs.Enqueued, error) {
	task := taskspec.NewTask(spec, now)
	held, err := t.heldBy(spec, task.UniqueKey, now)
	if held != 0 {
		t.spare(held)
	}
	if err != nil || held != 0 && !spec.Unique.Replace {
		return jobs.Enqueued{ID: held, Kept: true}, err
	}

	t.spare(spec.DependsOn...)
	t.spare(spec.DependsOnAny...)
	freed, err := t.makeRoom(len(spec.Args)+len(spec.Input), now)
	if err == nil && freed && held != 0 { // it may have been cancelled because it waited for a dropped task
		held, err = t.heldBy(spec, task.UniqueKey, now)
	}
	if err != nil {
		return jobs.Enqueued{}, err
	}

	o, err := t.orderingOf(spec, added)
	if err != nil {
		return jobs.Enqueued{}, err
	}
	if held != 0 {
		return t.replace(held, spec, task, o, now)
	}

	id, err := t.insertOrdered(&task, o, now)
	if err == nil && len(spec.Input) > 0 {
		_, err = t.exec(insertInput, id, spec.Input)
	}
	if err == nil {
		task.ID = id
		err = t.holdKey(&task)
	}
	if err == nil && spec.Batch == jobs.NewBatch {
		err = t.execOne(startBatch, id, id)
	}

	return jobs.Enqueued{ID: id}, err
}

// insertOne adds one task in a transaction of its own. needsOwnInsert must be
// false for it.
func (t *tx) insertOne(spec *jobs.Spec, now time.Time) (int64, error) {
	if err := t.checkSpace(); err != nil {
		return 0, err
	}

	task := taskspec.NewTask(spec, now)
	values, err := appendPlain(make([]any, 0, plainValues-1), &task)
	if err != nil {
		return 0, err
	}

	result, err := t.do(insertOne, values)
	if err != nil {
		return 0, err
	}

	return result.LastInsertId()
}

// errTaken says that plain SQL on a server took the unique key after this
// transaction had found it free. All other inserts need the write lock, which
// this transaction holds.
var errTaken = errors.New("another task has the unique key")

// settings are values of a new task that jobs.Task doesn't have: whether it
// waits for others and, if it's cancelled at once, when and why.
type settings struct {
	depends    bool
	waits      any
	finishedAt any
	outcome    any
}

func (t *tx) insert(task *jobs.Task, s settings) (int64, error) {
	values, err := t.appendID(make([]any, 0, 24)) // insertTask has 24 parameters
	if err == nil {
		values, err = appendPlain(values, task)
	}
	if err != nil {
		return 0, err
	}

	values = append(values, s.values(task)...)
	values = append(values, nullText(task.Schedule), nullTime(task.Tick), s.finishedAt, s.outcome)
	var ids [1]int64
	err = t.insertRows(insertTask, ids[:], values)
	return ids[0], err
}

// appendPlain appends the values for insertPlain, without the id.
func appendPlain(values []any, task *jobs.Task) ([]any, error) {
	values, err := appendDefinition(values, task)
	return append(values, task.CreatedAt.UnixMilli(), nullText(task.CreatedBy), task.UpdatedAt.UnixMilli(), nullNumber(task.Batch)), err
}

// appendDefinition appends the values, from the state to the options, that
// insertPlain and rewriteTask write.
func appendDefinition(values []any, task *jobs.Task) ([]any, error) {
	options, err := taskspec.EncodeOptions(&task.Options)
	return append(values, string(task.State), task.Queue, task.Job, nullText(task.Args), nullText(task.Label), int64(task.Priority),
		task.RunAt.UnixMilli(), nullTime(task.ExpiresAt), nullNumber(task.MaxAttempts), int64(task.MaxLosses), nullText(options)), err
}

// values are for the columns unique_key, lane, parts and waits.
func (s *settings) values(task *jobs.Task) []any {
	parts := 0
	if task.InputBytes > 0 {
		parts |= partInput
	}
	if s.depends {
		parts |= partDependencies
	}
	return []any{nullText(task.UniqueKey), nullText(task.Lane), nullNumber(parts), s.waits}
}

// appendID appends the id of the next task in a file; a server assigns ids
// itself. It reads the highest id once in a transaction, since the write lock
// keeps other processes from adding tasks.
func (t *tx) appendID(values []any) ([]any, error) {
	if t.db.traits.GivesIDs {
		return values, nil
	}
	if t.lastID == 0 {
		if err := t.scan(selectHighestID, nil, &t.lastID); err != nil {
			return nil, err
		}
		t.firstID = t.lastID + 1
	}
	t.lastID++
	return append(values, t.lastID), nil
}

type ordering struct {
	waiting
	paused bool
}

func (o *ordering) hasDependencies() bool { return len(o.after)+len(o.afterAny) > 0 }

// orderingOf returns how the task of a spec depends on others. added has the
// results of the earlier tasks of the same call.
func (t *tx) orderingOf(spec *jobs.Spec, added []jobs.Enqueued) (ordering, error) {
	o := ordering{paused: spec.Paused}
	after, err := appendEarlier(spec.DependsOn, spec.DependsOnEarlier, added)
	if err != nil {
		return o, err
	}
	afterAny, err := appendEarlier(spec.DependsOnAny, spec.DependsOnAnyEarlier, added)
	if err == nil {
		o.waiting, err = t.waitsFor(after, afterAny)
	}
	return o, err
}

func (t *tx) insertOrdered(task *jobs.Task, o ordering, now time.Time) (int64, error) {
	taken, err := t.laneTaken(task.Lane)
	if err != nil {
		return 0, err
	}

	waits := o.waits() || o.paused
	state := taskspec.InitialState(task.RunAt, now, waits, taken)
	with := settings{depends: o.hasDependencies()}
	if o.broken != "" {
		state, with.finishedAt = jobs.Cancelled, now.UnixMilli()
		with.outcome = jsonText(outcome{Reason: jobs.ReasonDependency, Error: o.broken})
	}

	task.State, with.waits = state, waitsValue(state, waits)
	id, err := t.insert(task, with)
	if err == nil {
		err = t.addDependencies(id, o.waiting)
	}

	switch {
	case err != nil:
	case state == jobs.Cancelled:
		err = t.afterEnd([]end{{id: id, queue: task.Queue, state: state}}, now)
	case o.paused:
		err = t.addPause(id, TaskChange{At: now, By: task.CreatedBy, Action: ActionPause})
	// With limits, laneTaken is true even for a free lane. freeLane makes the
	// task pending if it may start.
	case state == jobs.Blocked && !waits && t.used.limits:
		err = t.freeLane(task.Lane, now)
	}

	return id, err
}

// waitsValue is the value of the column waits in a state.
func waitsValue(state jobs.State, waits bool) any {
	if state != jobs.Blocked {
		return nil
	}
	return waits
}

// appendEarlier appends the ids of earlier tasks of the same call, which are
// indexes of added, to a copy of ids.
func appendEarlier(ids []int64, earlier []int, added []jobs.Enqueued) ([]int64, error) {
	for _, i := range earlier {
		if i < 0 || i >= len(added) {
			return nil, &jobs.FieldError{Field: "after", Msg: fmt.Sprintf("%d is no earlier task of this call", i)}
		}
		ids = append(ids[:len(ids):len(ids)], added[i].ID)
	}
	return ids, nil
}

// Input returns the stdin of the command of a task.
func (d *DB) Input(ctx context.Context, id int64) ([]byte, error) {
	var data []byte
	err := d.read.GetContext(ctx, &data, d.sql.Text(selectInput), id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return data, d.explainRead(ctx, err)
}

package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"example.com/runner/internal/usercode"
)

// maxBulk is the greatest number of tasks in one call of a bulk function.
const maxBulk = 1000

// BulkTask is one of the tasks that a bulk function gets in a call. See
// Func.BulkHandler.
type BulkTask[In any] struct {
	// Context is the context of this task. It ends when the task times out, is
	// cancelled or has passed to another worker, and when this worker shuts
	// down. context.Cause returns the cause. To act on this task, pass this
	// context to the functions of package runner, such as Logger, Progress,
	// Step and FinishTx.
	Context context.Context
	Task    Task // the task as the worker claimed it, and as middleware has changed it since
	Input   In

	member *bulkMember
}

// End ends this task with an error, or completes it with nil, before the
// function returns. The errors of RetryIn, Snooze and Cancel have their usual
// meanings. The worker writes the outcome to the database soon after the call,
// so that a later crash does not repeat this task. The outcome of the last open
// task of a call waits until the function returns. After the call the function
// must not work on the task any more, because the next attempt of the task may
// start at once. Only the first call has an effect. Many goroutines may call
// End at the same time.
func (t BulkTask[In]) End(err error) { t.member.end(nil, err) }

// BulkHandler returns a Handler that calls the given function with up to n
// tasks of the job at a time, and at least one. Use it if the effect of many
// tasks costs little more than that of one, such as a bulk insert or a request
// that takes a list.
//
// The function can end single tasks with BulkTask.End. The result of the
// function is the outcome of all tasks that it has not ended: nil completes
// them, and an error or a panic is the error of each of them. Each task has its
// own attempt, result, error, log, timeout and retries. A timeout or a
// cancellation of one task ends only the context of that task. The function
// should then stop its work on that task and call End. When the context of Work
// ends, the worker stops, and the context ctx of the function ends after the
// time Grace (see runner.WorkOptions). The context ctx also ends when the
// contexts of all remaining tasks have ended; a task remains until the function
// calls End for it, and the last one until the function returns. The context
// ctx belongs to no task, so pass BulkTask.Context, not ctx, to the functions
// of package runner.
//
// A call takes one slot of the worker until the function returns. When a
// worker claims a task of the job, it claims up to n-1 more tasks of the job in
// the same queue, in the usual order. The function gets them in this order. The
// worker takes only tasks that are due, and does not wait for a full call. So
// a task starts at once while a slot is free. If all slots are taken, more
// tasks become due until a slot is free, so the next call is larger. With
// Handler.BulkWait the worker waits for a full call. A task whose worker has
// died several times runs in a call of its own (see MaxLosses).
//
// The rate of a limit (admin.SetLimit) counts a call of the function as one
// start, however many tasks the call has. So a rate of five a second with
// calls of 100 allows five requests of up to 100 tasks each. Limit.Running,
// lanes and pauses apply to each task. A call has at most one task of a lane.
//
// A task that failed waits until its next attempt is due. Tasks that were
// enqueued later may start before that. To keep the order of all tasks of a
// queue, make one call at a time (WorkOptions.Concurrency or a QueueMax of 1,
// in one worker). If the function sends the tasks to a server and the request
// fails, do not return: wait in the function and send the request again. Each
// return of the function ends an attempt of each task. If ctx ends while the
// function waits, return RetryIn(0, err): the next call then begins with the
// same tasks. To keep the order only among the tasks of one device or account,
// use single tasks with a Lane.
//
// Middleware runs for each task, on a goroutine of its own. The function starts
// when the middleware of all tasks has called next. If that takes longer than a
// second, the function starts with the tasks whose middleware has called next,
// and a further call gets the other tasks.
//
// BulkHandler panics if n is less than 1 or more than 1000, or if the function
// is nil.
func (f Func[In]) BulkHandler(n int, call func(ctx context.Context, tasks []BulkTask[In]) error) Handler {
	return f.bulkHandler(n, call == nil, func(ctx context.Context, members []*bulkMember) error {
		return call(ctx, bulkTasks[In](members))
	})
}

// BulkHandler returns a Handler that calls the given function with up to n
// tasks at a time. The function returns one Out for each task, in the order of
// the tasks. The Out is stored as the result of the task unless the function
// has ended the task with BulkTask.End. The documentation of Func.BulkHandler
// also holds for this method.
func (f ResultFunc[In, Out]) BulkHandler(n int, call func(ctx context.Context, tasks []BulkTask[In]) ([]Out, error)) Handler {
	return f.bulkHandler(n, call == nil, func(ctx context.Context, members []*bulkMember) error {
		results, err := call(ctx, bulkTasks[In](members))
		if err == nil && len(results) != len(members) {
			err = fmt.Errorf("the function of %s returned %d results for %d tasks", f.job, len(results), len(members))
		}
		if err != nil {
			return err
		}

		for i, m := range members {
			if p := usercode.Call(func() { m.end(usercode.MarshalResult(results[i])) }); p != nil {
				m.end(nil, p) // the MarshalJSON of this result concerns no other task
			}
		}

		return nil
	})
}

func (f Func[In]) bulkHandler(n int, isNil bool, call func(context.Context, []*bulkMember) error) Handler {
	h := f.handler(isNil, nil)
	if n < 1 || n > maxBulk {
		panic(fmt.Sprintf("jobs: %d tasks in a call of %s; use 1 to %d", n, f.job, maxBulk))
	}

	h.BulkSize = n
	h.Run = func(ctx context.Context, task Task) (json.RawMessage, error) {
		in, err := f.args(task)
		if err != nil {
			return nil, err
		}

		m := &bulkMember{ctx: ctx, task: task, input: in, ended: make(chan struct{})}
		if all := usercode.Join(ctx, m); all != nil {
			go runBulk(all, call)
		}

		<-m.ended
		if m.last {
			<-m.call.returned
		}
		if p, panicked := m.err.(*usercode.Panic); panicked { //nolint:errorlint // an error of the program has other types
			panic(p)
		}
		if m.inTime && m.err != nil && m.ctx.Err() != nil {
			return m.result, usercode.Decided{Err: m.err}
		}

		return m.result, m.err
	}
	return h
}

// bulkMember is one of the tasks that a bulk function gets in a call.
type bulkMember struct {
	ctx   context.Context
	task  Task
	input any

	call   *bulkCall   // the bulkCall that has this task; set before the function is called
	detach func() bool // stops the callback that bulkCall.add has registered for the end of ctx

	once   sync.Once
	ended  chan struct{} // closed when the fields below are set
	result json.RawMessage
	err    error // a *usercode.Panic if the function panicked before it had ended this task
	inTime bool  // whether ctx had not ended when they were set
	last   bool  // whether no other task of the call was open
}

func (m *bulkMember) end(result json.RawMessage, err error) {
	m.once.Do(func() {
		m.result, m.err, m.inTime = result, err, m.ctx.Err() == nil
		m.last = m.call.close(m)
		close(m.ended)
	})
}

// bulkCall is a call of a bulk function. A task of the call is open until the
// function ends it. The last one stays open until the function returns: its
// attempt keeps the slot of the call. When the contexts of all open tasks have
// ended, bulkCall ends the context of the function.
type bulkCall struct {
	cancel   context.CancelCauseFunc
	returned chan struct{} // closed when the function has returned

	mu    sync.Mutex
	open  int   // number of open tasks
	live  int   // number of open tasks whose contexts have not ended
	cause error // context.Cause of the task whose context ended last
}

// add adds a task to the call, and watches the context of the task.
func (c *bulkCall) add(m *bulkMember) {
	m.call = c
	m.detach = context.AfterFunc(m.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live--
		c.cause = context.Cause(m.ctx)
		c.check()
	})
}

// close closes a task of the call whose outcome is set, unless it is the last
// open one.
func (c *bulkCall) close(m *bulkMember) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.open == 1 {
		return true
	}
	if m.detach() {
		c.live--
	}

	c.open--
	c.check()
	return false
}

// check ends the context of the function if the contexts of all open tasks have
// ended.
func (c *bulkCall) check() {
	if c.live == 0 {
		c.cancel(c.cause)
	}
}

func bulkTasks[In any](members []*bulkMember) []BulkTask[In] {
	tasks := make([]BulkTask[In], len(members))
	for i, m := range members {
		tasks[i] = BulkTask[In]{Context: m.ctx, Task: m.task, member: m}
		// Without the second result this would panic if m.input is nil. It may
		// be nil if In is an interface.
		tasks[i].Input, _ = m.input.(In)
	}
	return tasks
}

// runBulk calls a bulk function. Then it ends the tasks that the
// function hasn't ended.
func runBulk(members []*bulkMember, call func(context.Context, []*bulkMember) error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	c := &bulkCall{cancel: cancel, returned: make(chan struct{}), open: len(members), live: len(members)}
	for _, m := range members {
		c.add(m)
	}

	var err error
	if p := usercode.Call(func() { err = call(ctx, members) }); p != nil {
		err = p
	}

	for _, m := range members {
		m.end(nil, err)
	}

	close(c.returned)
}

package harness

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// kind is the behaviour of a task of the workload. The kind determines how the
// task may end.
type kind string

const (
	quick           kind = "quick"            // runs for a few ms
	long            kind = "long"             // runs for more than two leases
	failing         kind = "failing"          // fails in every attempt
	poison          kind = "poison"           // kills its worker in every attempt
	killsGuardian   kind = "kills-guardian"   // kills its guardian in the first attempt
	ignoresTerm     kind = "ignores-term"     // ignores SIGTERM and the end of its context
	leavesProcesses kind = "leaves-processes" // leaves one process behind for each element of findableTraits
	leavesHidden    kind = "leaves-hidden"    // leaves 1 to 20 processes behind; most have no environment that identifies them
	otherUser       kind = "other-user"       // changes to another user, if it has the right
	timesOut        kind = "times-out"        // runs longer than its timeout
	atMostOnce      kind = "at-most-once"     // runs at most once
	cancelRetry     kind = "cancel-retry"     // ignores TERM; a client cancels it while it runs, and then retries it at once
)

// kindWeights lists how many of 1000 tasks have each kind. All other tasks are
// quick.
var kindWeights = []struct {
	kind kind
	of   int
}{{long, 50}, {failing, 50}, {poison, 12}, {killsGuardian, 10}, {ignoresTerm, 20}, {leavesProcesses, 40}, {leavesHidden, 60},
	{otherUser, 30}, {timesOut, 15}, {atMostOnce, 30}, {cancelRetry, 30}}

const (
	failingAttempts = 3
	poisonLosses    = 2
	manyLosses      = 100_000 // limit of losses for all kinds except poison; high, because faults can hit the same task many times
	urgent          = 50      // priority above all others
	tickLabel       = "ticks:quick"
	functionJob     = "selftest.function"
)

// commandsOnly lists the kinds that can't be functions.
var commandsOnly = []kind{leavesProcesses, leavesHidden, otherUser, killsGuardian, cancelRetry}

var priorities = []int{2, 5, 7, 9}

// operation is the argument of a function of the workload.
type operation struct {
	Kind kind
	MS   int
}

var function = jobs.Define[operation](functionJob)

// generator draws random tasks.
type generator struct {
	workspace
	path   string  // path of the program
	name   string  // unique name of this generator
	recent []int64 // ids of the latest tasks of this generator
	random *rand.Rand
	drawn  int
}

func newGenerator(w workspace, path, me string, seed uint64) *generator {
	return &generator{workspace: w, path: path, name: me, random: rand.New(rand.NewPCG(seed, 3))}
}

// draft is a task that is about to be enqueued.
type draft struct {
	spec  jobs.Spec
	label string // unique label; it ends with the kind of the task
	kind  kind
}

// draw returns a random task; a light one is a function that takes little time.
func (g *generator) draw(light bool) draft {
	k := quick
	at := g.random.IntN(1000)
	for _, w := range kindWeights {
		if at -= w.of; at < 0 {
			k = w.kind
			break
		}
	}

	if light && k != failing && k != atMostOnce {
		k = quick
	}

	ms := 5 + g.random.IntN(55)
	switch k {
	case long:
		ms = int(Lease.Milliseconds()) * (21 + g.random.IntN(30)) / 10
	case leavesProcesses, leavesHidden, cancelRetry:
		ms = 200 + g.random.IntN(400)
	case ignoresTerm:
		ms = 100 + g.random.IntN(200)
	case timesOut:
		ms = int(time.Minute.Milliseconds())
	}

	g.drawn++
	label := fmt.Sprintf("%s-%d:%s", g.name, g.drawn, k)
	options := []jobs.Option{jobs.Label(label), jobs.Queue([]string{"a", "b"}[g.random.IntN(2)]),
		jobs.Priority(priorities[g.random.IntN(len(priorities))]), jobs.MaxAttempts(1), jobs.MaxLosses(manyLosses),
		jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Duration(20+g.random.IntN(200)) * time.Millisecond})}
	switch k {
	case failing:
		options = append(options, jobs.MaxAttempts(failingAttempts))
	case poison:
		options = append(options, jobs.MaxLosses(poisonLosses))
	case atMostOnce:
		options = append(options, jobs.AtMostOnce())
	case timesOut:
		options = append(options, jobs.Timeout(time.Duration(200+g.random.IntN(400))*time.Millisecond))
	case cancelRetry: // the priority makes the task run at once, so that it is cancelled while it runs
		options = append(options, jobs.Priority(urgent))
	}

	if k == quick && g.random.IntN(25) == 0 {
		options = append(options, jobs.Unique("key"+strconv.Itoa(g.random.IntN(5))))
	}
	if (k == quick || k == failing || k == poison) && g.random.IntN(12) == 0 {
		options = append(options, jobs.Lane("lane"+strconv.Itoa(g.random.IntN(3))))
	}
	if k == quick && len(g.recent) > 0 && g.random.IntN(15) == 0 {
		after := []func(...int64) jobs.Option{jobs.DependsOn, jobs.DependsOnAny}[g.random.IntN(2)]
		options = append(options, after(g.recent[g.random.IntN(len(g.recent))]))
	}
	if g.random.IntN(20) == 0 {
		options = append(options, jobs.In(time.Duration(10+g.random.IntN(500))*time.Millisecond))
	}
	if light || g.random.IntN(3) == 0 && !slices.Contains(commandsOnly, k) {
		return draft{function.With(operation{k, ms}, options...), label, k}
	}

	c := command.Command{Argv: []string{g.path, RoleCommand, "task", g.dir, string(k), strconv.Itoa(ms)}, Path: g.path, Dir: g.dir,
		Settings: command.Settings{KillAfter: 100 * time.Millisecond}}
	return draft{jobs.Command(c, options...), label, k}
}

// remember records a task on which later tasks may depend.
func (g *generator) remember(id int64) {
	if g.recent = append(g.recent, id); len(g.recent) > 10 {
		g.recent = g.recent[1:]
	}
}

// kindOf returns the kind that a label names.
func kindOf(label string) kind {
	_, k, _ := strings.Cut(label, ":")
	return kind(k)
}

// validEnd reports whether a task of a kind may end as t did. cancelled tells
// whether a client has tried to cancel it, broken whether a dependency failed
// or was cancelled.
func validEnd(k kind, t *taskHistory, cancelled, broken bool) bool {
	if t.state == jobs.Cancelled {
		return cancelled && t.reason == string(jobs.ReasonCancelled) || broken && t.reason == string(jobs.ReasonDependency)
	}

	switch k {
	case failing:
		return t.state == jobs.Failed && t.attempt == failingAttempts &&
			(t.reason == string(jobs.ReasonExit) || t.reason == string(jobs.ReasonError))
	case poison:
		return t.state == jobs.Failed && t.reason == string(jobs.ReasonLost) && t.losses == poisonLosses+1
	case timesOut:
		return t.state == jobs.Failed && t.reason == string(jobs.ReasonTimeout)
	case atMostOnce:
		return t.state == jobs.Completed ||
			t.state == jobs.Failed && (t.reason == string(jobs.ReasonLost) || t.reason == string(jobs.ReasonShutdown))
	}

	return t.state == jobs.Completed
}

// columns returns the values of the nullable columns for a plain INSERT.
func (d draft) columns(now time.Time) (key, lane, after, afterAny, runAt, timeout any) {
	text := func(value string) any {
		if value == "" {
			return nil
		}
		return value
	}
	list := func(ids []int64) any {
		if ids == nil {
			return nil
		}
		text, _ := json.Marshal(ids) // encoding a list of numbers can't fail
		return string(text)
	}
	if d.spec.In > 0 {
		runAt = now.Add(d.spec.In).UnixMilli()
	}
	if d.spec.Timeout > 0 {
		timeout = d.spec.Timeout.Milliseconds()
	}

	return text(d.spec.UniqueKey), text(d.spec.Lane), list(d.spec.DependsOn), list(d.spec.DependsOnAny), runAt, timeout
}

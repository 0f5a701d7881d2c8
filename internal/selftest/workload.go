package selftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// kind is what a task of the workload does. It says how the task must end.
type kind string

const (
	quick           kind = "quick"            // a few ms
	long            kind = "long"             // more than two leases
	failing         kind = "failing"          // each attempt fails
	poison          kind = "poison"           // kills its worker, each time
	killsGuardian   kind = "kills-guardian"   // kills its guardian, the first time
	ignoresTerm     kind = "ignores-term"     // does not listen to TERM, or to its context
	leavesProcesses kind = "leaves-processes" // leaves processes behind in each of the plain ways
	leavesHidden    kind = "leaves-hidden"    // leaves 1 to 20 processes behind while it runs, most of which cannot be recognised by their environment
	otherUser       kind = "other-user"       // becomes a process of another user, where it may
	timesOut        kind = "times-out"        // runs for longer than its timeout
	atMostOnce      kind = "at-most-once"     // at most once
	cancelRetry     kind = "cancel-retry"     // cancelled while it runs, to which it does not listen, and run again
)

// weights are how often, in a thousand. What is left is quick.
var kindWeights = []struct {
	kind kind
	of   int
}{{long, 50}, {failing, 50}, {poison, 12}, {killsGuardian, 10}, {ignoresTerm, 20}, {leavesProcesses, 40}, {leavesHidden, 60}, {otherUser, 30}, {timesOut, 15},
	{atMostOnce, 30}, {cancelRetry, 30}}

const (
	failingAttempts = 3
	poisonLosses    = 2
	manyLosses      = 100_000 // of all others: whom the nemesis hits how often says nothing about a task
	urgent          = 50      // a priority above all others
	tickLabel       = "ticks:quick"
	functionJob     = "selftest.function"
)

// commandsOnly are the kinds that no function can be.
var commandsOnly = []kind{leavesProcesses, leavesHidden, otherUser, killsGuardian, cancelRetry}

var priorities = []int{2, 5, 7, 9}

// deed is what a function is told to do.
type operation struct {
	Kind kind
	MS   int
}

var function = jobs.Define[operation](functionJob)

// author draws tasks.
type generator struct {
	workspace
	path   string  // of the program
	name   string  // no other author has this name
	recent []int64 // of its tasks
	random *rand.Rand
	drawn  int
}

func newGenerator(w workspace, path, me string, seed uint64) *generator {
	return &generator{workspace: w, path: path, name: me, random: rand.New(rand.NewPCG(seed, 3))}
}

// draft is a task to be enqueued.
type draft struct {
	spec  jobs.Spec
	label string // its label, which no other has, and its kind
	kind  kind
}

// draw makes up a task; a light one is a function that takes little time.
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
	token := fmt.Sprintf("%s-%d:%s", g.name, g.drawn, k)
	options := []jobs.Option{jobs.Label(token), jobs.Queue([]string{"a", "b"}[g.random.IntN(2)]), jobs.Priority(priorities[g.random.IntN(len(priorities))]),
		jobs.MaxAttempts(1), jobs.MaxLosses(manyLosses), jobs.KillAfter(100 * time.Millisecond),
		jobs.Retry(jobs.Backoff{Strategy: jobs.Fixed, Delay: time.Duration(20+g.random.IntN(200)) * time.Millisecond})}
	switch k {
	case failing:
		options = append(options, jobs.MaxAttempts(failingAttempts))
	case poison:
		options = append(options, jobs.MaxLosses(poisonLosses))
	case atMostOnce:
		options = append(options, jobs.AtMostOnce())
	case timesOut:
		options = append(options, jobs.Timeout(time.Duration(200+g.random.IntN(400))*time.Millisecond))
	case cancelRetry: // it must run when it is cancelled, and again at once
		options = append(options, jobs.Priority(urgent))
	}
	if k == quick && g.random.IntN(25) == 0 {
		options = append(options, jobs.Unique("key"+strconv.Itoa(g.random.IntN(5))))
	}
	if (k == quick || k == failing || k == poison) && g.random.IntN(12) == 0 {
		options = append(options, jobs.Lane("lane"+strconv.Itoa(g.random.IntN(3))))
	}
	if k == quick && len(g.recent) > 0 && g.random.IntN(15) == 0 {
		after := []func(...int64) jobs.Option{jobs.After, jobs.AfterAny}[g.random.IntN(2)]
		options = append(options, after(g.recent[g.random.IntN(len(g.recent))]))
	}
	if g.random.IntN(20) == 0 {
		options = append(options, jobs.In(time.Duration(10+g.random.IntN(500))*time.Millisecond))
	}
	if light || g.random.IntN(3) == 0 && !slices.Contains(commandsOnly, k) {
		return draft{function.With(operation{k, ms}, options...), token, k}
	}
	c := jobs.Command{Argv: []string{g.path, RoleCommand, "task", g.dir, string(k), strconv.Itoa(ms)}, Path: g.path, Dir: g.dir}
	return draft{c.With(options...), token, k}
}

// remember takes note of a task that others may wait for.
func (g *generator) remember(id int64) {
	if g.recent = append(g.recent, id); len(g.recent) > 10 {
		g.recent = g.recent[1:]
	}
}

// kindOf reads the kind from a token.
func kindOf(token string) kind {
	_, k, _ := strings.Cut(token, ":")
	return kind(k)
}

// mayEnd says whether a task of a kind may end like this. cancelled: somebody was about to cancel it; broken: a task that it waited for
// did not complete.
func validEnd(k kind, t *taskHistory, cancelled, broken bool) bool {
	if t.state == jobs.Cancelled {
		return cancelled && t.reason == string(jobs.ReasonCancelled) || broken && t.reason == string(jobs.ReasonDependency)
	}
	switch k {
	case failing:
		return t.state == jobs.Failed && t.attempt == failingAttempts && (t.reason == string(jobs.ReasonExit) || t.reason == string(jobs.ReasonError))
	case poison:
		return t.state == jobs.Failed && t.reason == string(jobs.ReasonLost) && t.losses == poisonLosses+1
	case timesOut:
		return t.state == jobs.Failed && t.reason == string(jobs.ReasonTimeout)
	case atMostOnce:
		return t.state == jobs.Completed || t.state == jobs.Failed && (t.reason == string(jobs.ReasonLost) || t.reason == string(jobs.ReasonShutdown))
	}
	return t.state == jobs.Completed
}

// columns are what a plain INSERT of a draft takes besides what is never null.
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
		text, _ := json.Marshal(ids) // numbers
		return string(text)
	}
	if d.spec.In > 0 {
		runAt = now.Add(d.spec.In).UnixMilli()
	}
	if d.spec.Timeout > 0 {
		timeout = d.spec.Timeout.Milliseconds()
	}
	return text(d.spec.UniqueKey), text(d.spec.Lane), list(d.spec.After), list(d.spec.AfterAny), runAt, timeout
}

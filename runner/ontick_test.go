package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

var reportJob = jobs.Define[string]("report")

// hourly is a schedule with an hourly tick. A function of the program makes its
// tasks.
func hourly(options ...jobs.Option) jobs.Schedule {
	return jobs.Schedule{Name: "report", Cron: "0 * * * *", Spec: reportJob.With("fixed", options...)}
}

// hourOf changes the task of a tick: its argument becomes the hour of the tick.
func hourOf(_ context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
	return reportJob.With(tick.UTC().Format("15:04"), jobs.Label(spec.Label), jobs.Queue(spec.Queue)), nil
}

// tickTest runs a test with a schedule and the function that makes its tasks.
// The test gets a list with the arguments of the tasks that have run.
func tickTest(t *testing.T, schedule jobs.Schedule, function tickFunc, test func(t *testing.T, r *runner.Runner, ran *[]string)) {
	t.Helper()
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var ran []string
		r.Register(reportJob.Handler(func(_ context.Context, hour string) error { ran = append(ran, hour); return nil }))
		if function == nil {
			schedule.OnTick = true // another program has the function
			testkit.NoError(t, r.SetSchedule(t.Context(), schedule))
		} else {
			testkit.NoError(t, r.OnTick(t.Context(), schedule, function))
		}
		test(t, r, &ran)
	})
}

type tickFunc = func(context.Context, time.Time, jobs.Spec) (jobs.Spec, error)

func TestFunctionMakesTaskOfEachTick(t *testing.T) {
	tickTest(t, hourly(jobs.Label("sales")), hourOf, func(t *testing.T, r *runner.Runner, ran *[]string) {
		for range 3 {
			runnertest.Advance(t, time.Hour)
			runnertest.RunDue(t, r)
		}
		testkit.Equal(t, "arguments", *ran, []string{"01:00", "02:00", "03:00"})
		task := runnerkit.Get(t, r, 1)
		testkit.Equal(t, "schedule", task.Schedule, "report")
		testkit.Equal(t, "label", task.Label, "sales")
		testkit.Equal(t, "tick", task.Tick.UTC().Hour(), 1)
	})
}

func TestTickIsTimeInZoneOfItsSchedule(t *testing.T) {
	night := hourly()
	night.Cron, night.Zone = "30 0 * * *", "Europe/Berlin" // 00:30 in Berlin is 23:30 UTC of the day before
	date := func(_ context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		return reportJob.With(tick.Format(time.DateTime)), nil
	}
	tickTest(t, night, date, func(t *testing.T, r *runner.Runner, ran *[]string) {
		runnertest.Advance(t, 24*time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "arguments", *ran, []string{"2000-01-02 00:30:00"})
	})
}

func TestScheduleThatIsInvalidHasNoIndex(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	wrong := hourly()
	wrong.Zone = "Local"
	err := r.SetSchedule(t.Context(), wrong)
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "unknown time zone")
	if _, is := errors.AsType[*runner.SpecError](err); is {
		t.Errorf("got %v, want an error without the index of a spec", err)
	}
}

func TestEachTickThatIsCaughtUpGetsItsOwnTask(t *testing.T) {
	all := hourly()
	all.CatchUp, all.Overlap = jobs.CatchUpAll, jobs.OverlapAllow
	tickTest(t, all, hourOf, func(t *testing.T, r *runner.Runner, ran *[]string) {
		runnertest.Advance(t, 4*time.Hour)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "arguments", *ran, []string{"01:00", "02:00", "03:00", "04:00"})
	})
}

func TestHandlerFindsTickInItsTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var ticks []string
		r.Register(reportJob.Handler(func(ctx context.Context, _ string) error {
			task, _ := runner.TaskFromContext(ctx)
			ticks = append(ticks, task.Tick.Format("15:04"))
			return nil
		}))
		testkit.NoError(t, r.SetSchedule(t.Context(), hourly()))
		for range 2 {
			runnertest.Advance(t, time.Hour)
			time.Sleep(10 * time.Second) // the tasks start late
			runnertest.RunDue(t, r)
		}
		testkit.Equal(t, "ticks", ticks, []string{"01:00", "02:00"})
	})
}

func TestFunctionSkipsTick(t *testing.T) {
	calls := 0
	even := func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		if calls++; tick.Hour()%2 == 1 {
			return spec, fmt.Errorf("no report: %w", runner.SkipTick)
		}
		return hourOf(ctx, tick, spec)
	}
	all := hourly()
	all.CatchUp, all.Overlap = jobs.CatchUpAll, jobs.OverlapAllow
	for name, schedule := range map[string]jobs.Schedule{"one by one": hourly(), "caught up": all} {
		calls = 0
		tickTest(t, schedule, even, func(t *testing.T, r *runner.Runner, ran *[]string) {
			if name == "caught up" {
				runnertest.Advance(t, 4*time.Hour)
				runnertest.RunDue(t, r)
			} else {
				stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
				time.Sleep(4*time.Hour + time.Minute)
				stop()
			}
			testkit.Equal(t, name+": arguments", *ran, []string{"02:00", "04:00"})
			testkit.Equal(t, name+": calls", calls, 4)
			time.Sleep(time.Hour)
			_, err := admin.RunSchedule(t.Context(), r, "report")
			testkit.ErrorIs(t, err, runner.SkipTick)
		})
	}
}

func TestFailingTickFunctionIsCalledAgain(t *testing.T) {
	for name, fail := range map[string]func() (jobs.Spec, error){
		"error":        func() (jobs.Spec, error) { return jobs.Spec{}, errors.New("not yet") },
		"panic":        func() (jobs.Spec, error) { panic("boom") },
		"invalid spec": func() (jobs.Spec, error) { return jobs.Spec{Job: "report", Queue: "no queue"}, nil },
		"due time":     func() (jobs.Spec, error) { return reportJob.With("x", jobs.In(time.Hour)), nil },
	} {
		calls := 0
		function := func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
			if calls++; calls < 4 {
				return fail()
			}
			return hourOf(ctx, tick, spec)
		}
		tickTest(t, hourly(), function, func(t *testing.T, r *runner.Runner, ran *[]string) {
			stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
			time.Sleep(time.Hour + 10*time.Second)
			stop()
			testkit.Equal(t, name+": calls", calls, 4)
			testkit.Equal(t, name+": arguments", *ran, []string{"01:00"})
		})
	}
}

// TestFailingTickFunctionIsNotCalledForEachDueTick has a schedule with a tick
// each second, whose function fails for a minute. Work calls the function about
// once a second, and not once for each due tick. Later each tick gets its task.
func TestFailingTickFunctionIsNotCalledForEachDueTick(t *testing.T) {
	each := hourly()
	each.Cron, each.CatchUp, each.Overlap = "@every 1s", jobs.CatchUpAll, jobs.OverlapAllow
	var calls atomic.Int64
	var up atomic.Bool
	function := func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		if calls.Add(1); !up.Load() {
			return jobs.Spec{}, errors.New("not yet")
		}
		return hourOf(ctx, tick, spec)
	}
	tickTest(t, each, function, func(t *testing.T, r *runner.Runner, ran *[]string) {
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		time.Sleep(time.Minute + 100*time.Millisecond)
		if n := calls.Load(); n < 50 || n > 125 {
			t.Errorf("got %d calls in a minute, want one or two a second", n)
		}
		up.Store(true)
		time.Sleep(5 * time.Second)
		stop()
		if len(*ran) < 64 || len(*ran) > 66 {
			t.Errorf("got %d tasks after 65 seconds, want one for each", len(*ran))
		}
	})
}

// TestHangingTickFunctionHoldsUpNothing lets the function of a schedule hang,
// also after its context has ended. Other schedules go on after half a minute,
// Work returns after its context has ended, and the function is not called
// again before it has returned.
func TestHangingTickFunctionHoldsUpNothing(t *testing.T) {
	var calls atomic.Int64
	var release chan struct{}
	hang := func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		if calls.Add(1) == 1 {
			<-release
		}
		return hourOf(ctx, tick, spec)
	}
	tickTest(t, hourly(), hang, func(t *testing.T, r *runner.Runner, ran *[]string) {
		// Make the channel here, inside the test on fake time. While a
		// goroutine waits for a channel that was made outside of this test, the
		// fake clock stands still.
		release = make(chan struct{})
		testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "other", Cron: "* * * * *", Spec: reportJob.With("other")}))
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		time.Sleep(time.Hour + 10*time.Minute + time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Work returned %v after it was told to stop, want at most 10 s", took)
		}
		testkit.Equal(t, "calls while the first one hangs", calls.Load(), 1)
		testkit.Equal(t, "tasks of the other schedule", len(*ran), 70)

		close(release)
		stop = runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		time.Sleep(10 * time.Second)
		stop()
		testkit.Equal(t, "calls", calls.Load(), 2)
		testkit.Equal(t, "last arguments", (*ran)[len(*ran)-1], "01:00")
	})
}

// TestWorkerWithoutFunctionLeavesTick runs a worker that has not registered the
// function of a schedule, and later a worker that has. Only the second worker
// handles the tick.
func TestWorkerWithoutFunctionLeavesTick(t *testing.T) {
	tickTest(t, hourly(), nil, func(t *testing.T, r *runner.Runner, ran *[]string) {
		other := hourly()
		other.Name = "other"
		testkit.NoError(t, r.SetSchedule(t.Context(), other))
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		time.Sleep(2*time.Hour + time.Minute)
		stop()
		testkit.Equal(t, "arguments of the other schedule", *ran, []string{"fixed", "fixed"})
		s, err := admin.Schedule(t.Context(), r, "report")
		testkit.NoError(t, err)
		testkit.Equal(t, "hour of the tick that waits", s.NextAt.UTC().Hour(), 1)
		_, err = admin.RunSchedule(t.Context(), r, "report")
		testkit.ErrorIs(t, err, jobs.ErrConflict, "does not have the function")

		testkit.NoError(t, r.RemoveSchedule(t.Context(), "other"))
		testkit.NoError(t, r.OnTick(t.Context(), hourly(), hourOf))
		runnertest.RunDue(t, r)
		testkit.Equal(t, "arguments after the start of a worker with the function", (*ran)[2:], []string{"02:00"})
		task, err := admin.RunSchedule(t.Context(), r, "report")
		testkit.NoError(t, err)
		testkit.Equal(t, "arguments of a run by hand", string(task.Args), `"02:01"`)
	})
}

func TestSkippedTickCallsNoFunction(t *testing.T) {
	calls := 0
	function := func(ctx context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		calls++
		return reportJob.With("x", jobs.Queue("paused")), nil
	}
	tickTest(t, hourly(), function, func(t *testing.T, r *runner.Runner, _ *[]string) {
		testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"paused"}, admin.PauseOptions{}))
		for range 3 {
			runnertest.Advance(t, time.Hour)
			runnertest.RunDue(t, r)
		}
		s, err := admin.Schedule(t.Context(), r, "report")
		testkit.NoError(t, err)
		testkit.Equal(t, "skipped ticks", s.Skipped, 2)
		testkit.Equal(t, "calls", calls, 1)
	})
}

func TestScheduleWithFunctionMustSaySo(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	testkit.NoError(t, r.OnTick(t.Context(), hourly(), hourOf))
	testkit.ErrorIs(t, r.SetSchedule(t.Context(), hourly()), jobs.ErrInvalid, "on_tick")
	for name, call := range map[string]func(){
		"two functions": func() { _ = r.OnTick(t.Context(), hourly(), hourOf) },
		"is nil":        func() { _ = r.OnTick(t.Context(), jobs.Schedule{Name: "other"}, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, name) {
					t.Errorf("got panic %q, want one with %q", got, name)
				}
			}()
			call()
		}()
	}
}

// TestInvalidScheduleKeepsNoFunction corrects a schedule that was refused.
func TestInvalidScheduleKeepsNoFunction(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	wrong := hourly()
	wrong.Cron = "never"
	testkit.ErrorIs(t, r.OnTick(t.Context(), wrong, hourOf), jobs.ErrInvalid, "cron")
	testkit.NoError(t, r.OnTick(t.Context(), hourly(), hourOf))
	s, err := admin.Schedule(t.Context(), r, "report")
	testkit.NoError(t, err)
	testkit.Equal(t, "whether a function makes its tasks", s.OnTick, true)
}

// TestTwoWorkersMakeOneTaskOfTick runs two workers with the same function. Only
// one of them makes the task of a tick.
func TestTwoWorkersMakeOneTaskOfTick(t *testing.T) {
	t.Parallel() // the test waits for three seconds of the clock
	path := admin.Path(runnerkit.Open(t, runner.Options{}))
	var stops []func()
	var first *runner.Runner
	for range 2 {
		r := runnerkit.OpenAt(t, path, runner.Options{})
		r.Register(reportJob.Handler(func(context.Context, string) error { return nil }))
		each := hourly()
		each.Cron = "@every 1s"
		testkit.NoError(t, r.OnTick(t.Context(), each, hourOf))
		stops = append(stops, runnerkit.Work(t, r, runner.WorkOptions{Keep: -1}))
		first = r
	}
	testkit.Eventually(t, "three tasks", func() bool {
		list, err := first.List(t.Context(), jobs.Filter{})
		testkit.NoError(t, err)
		return len(list) >= 3
	})
	for _, stop := range stops {
		stop()
	}
	list, err := first.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	ticks := map[time.Time]int{}
	for _, task := range list {
		if ticks[task.Tick]++; ticks[task.Tick] > 1 {
			t.Errorf("got two tasks for the tick %v, want one", task.Tick)
		}
		if slices.Equal(task.Args, []byte(`"fixed"`)) {
			t.Errorf("got the arguments of the schedule for the tick %v, want those of the function", task.Tick)
		}
	}
}

// The argument of each task is the hour of its tick.
func ExampleRunner_OnTick() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(reportJob.Handler(func(_ context.Context, hour string) error {
		fmt.Println("report of the hour before", hour)
		return nil
	}))
	report := jobs.Schedule{Name: "report", Cron: "@hourly", Spec: reportJob.With("")}
	err := r.OnTick(ctx, report, func(_ context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		return reportJob.With(tick.Format("15 h"), jobs.Label(spec.Label)), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	task, err := admin.RunSchedule(ctx, r, "report") // the function gives this task the present hour as its argument
	fmt.Println(task.Schedule, len(task.Args) > 2, err)
	// Output:
	// report true <nil>
}

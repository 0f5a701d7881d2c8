package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestStepsThatEndedAreNotDoneAgain(t *testing.T) {
	charged, shipped := 0, 0
	fake(t, Options{}, func(ctx context.Context, b *bubble, in string) (string, error) {
		receipt, err := Step(ctx, "charge", func(context.Context) (map[string]int, error) {
			charged++
			return map[string]int{"receipt": charged}, nil
		})
		if err != nil {
			return "", err
		}
		if receipt["receipt"] != 1 {
			b.Errorf("the receipt is %v", receipt)
		}
		_, err = Step(ctx, "ship", func(context.Context) (any, error) {
			if shipped++; shipped < 3 {
				return nil, errors.New("no parcel service")
			}
			return nil, nil
		})
		return in, err
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		b.work(4 * time.Minute)
		task := b.want(id, jobs.Completed, "")
		if charged != 1 || shipped != 3 {
			b.Errorf("charged %d times, tried to ship %d times", charged, shipped)
		}
		steps, err := b.Steps(b.Context(), id)
		if err != nil || len(steps) != 2 || steps[0].Name != "charge" || string(steps[0].Value) != `{"receipt":1}` ||
			string(steps[1].Value) != "null" || steps[0].At != b.began.UTC() || steps[1].GenerationID+1 != task.GenerationID {
			b.Errorf(`got %+v, %v; want no error, len(steps) = 2, steps[0].Name = "charge", string(steps[0].Value) = `+
				"`{\"receipt\":1}`, string(steps[1].Value) = \"null\", steps[0].At = b.began.UTC(), "+
				"steps[1].GenerationID+1 = task.GenerationID",
				steps, err)
		}
	})
}

func TestSleepGivesTheSlotBack(t *testing.T) {
	before, after := 0, 0
	fake(t, Options{Concurrency: 1}, func(ctx context.Context, b *bubble, in string) (string, error) {
		if in == "other" {
			return "", nil
		}
		if _, err := Step(ctx, "before", func(context.Context) (int, error) { before++; return before, nil }); err != nil {
			return "", err
		}
		if err := Sleep(ctx, "cool-off", 10*time.Minute); err != nil {
			during := func(context.Context) (int, error) {
				b.Error("a step ran during the sleep")
				return 0, nil
			}
			if _, again := Step(ctx, "while it sleeps", during); again != err {
				b.Errorf("a step while it sleeps: %v", again)
			}
			return "", err
		}
		after++
		return "", Sleep(ctx, "none", 0)
	}, func(b *bubble) {
		id := b.enqueue(work.With("sleeper"))
		b.enqueue(work.With("other"))
		b.within(time.Minute, func() {
			b.want(id, jobs.Scheduled, "")
			if _, err := b.Retry(b.Context(), []int64{id}, 0); err != nil { // makes the task due, but the task continues to sleep
				b.Error(err)
			}
		})
		b.work(3 * time.Minute)
		b.ran(0, 0, time.Minute)
		b.work(10 * time.Minute) // a second Work
		b.ran(0, 0, time.Minute, 10*time.Minute)
		if task := b.want(id, jobs.Completed, ""); task.Attempt != 1 || before != 1 || after != 1 {
			b.Errorf("attempt %d, before %d, after %d", task.Attempt, before, after)
		}
		attempts, err := b.Attempts(b.Context(), jobs.Task{ID: id})
		if err != nil || len(attempts) != 3 || attempts[0].State != jobs.Snoozed || attempts[0].Counted {
			b.Errorf("got %+v, %v; want no error, len(attempts) = 3, attempts[0].State = Snoozed, not "+
				"(attempts[0].Counted)",
				attempts, err)
		}
	})
}

func TestStepsInAnotherOrderAreAnError(t *testing.T) {
	now := func(name string, sleep bool) func(context.Context) error {
		return func(ctx context.Context) error {
			if sleep {
				return Sleep(ctx, name, 0)
			}
			_, err := Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
			return err
		}
	}
	charge, pause, ship := now("charge", false), now("pause", true), now("ship", false)
	nested := func(ctx context.Context) error {
		_, err := Step(ctx, "outer", func(ctx context.Context) (int, error) { return 1, charge(ctx) })
		return err
	}
	for name, test := range map[string]struct {
		first, then []func(context.Context) error
		want        string // empty for no error
	}{
		"renamed": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{charge, now("send", false)},
			`number 2 is step "send", and was step "ship"`},
		"reordered": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{ship, charge},
			`number 1 is step "ship", and was step "charge"`},
		"removed": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{ship},
			`number 1 is step "ship", and was step "charge"`},
		"removed from end": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{charge}, ""},
		"another kind": {[]func(context.Context) error{charge}, []func(context.Context) error{now("charge", true)},
			`number 1 is sleep "charge", and was step "charge"`},
		"new at the end": {[]func(context.Context) error{charge}, []func(context.Context) error{charge, pause, ship}, ""},
		"new in the middle": {[]func(context.Context) error{charge, ship}, []func(context.Context) error{charge, pause, ship},
			`number 2 is sleep "pause", and was step "ship"`},
		"twice":           {nil, []func(context.Context) error{charge, charge}, `step "charge" comes twice`},
		"nested":          {nil, []func(context.Context) error{nested}, `"charge" began before another step ended`},
		"no name":         {nil, []func(context.Context) error{now("", false)}, `invalid name ""`},
		"no name of text": {nil, []func(context.Context) error{now("a\nb", true)}, `invalid name "a\nb"`},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			fake(t, Options{}, func(ctx context.Context, b *bubble, _ string) (string, error) {
				list := test.first
				if calls++; calls > 1 {
					list = test.then
				}
				for _, step := range list {
					if err := step(ctx); err != nil {
						if !errors.Is(err, jobs.ErrStep) {
							b.Errorf("got %v; want Is(err, ErrStep)", err)
						}
						return "", jobs.Cancel(err)
					}
				}
				if calls == 1 {
					return "", errors.New("again")
				}
				return "", nil
			}, func(b *bubble) {
				id := b.enqueue(work.With(""))
				b.work(2 * time.Minute)
				if test.want == "" {
					b.want(id, jobs.Completed, "")
				} else if task := b.want(id, jobs.Cancelled, jobs.ReasonCancelled); !strings.Contains(task.Error, test.want) {
					b.Errorf("%s; want %s", task.Error, test.want)
				}
			})
		})
	}
}

func TestAStepThatWasDoneIsKeptWhenItsAttemptIsStopped(t *testing.T) {
	calls := 0
	fake(t, Options{Grace: -1}, func(ctx context.Context, b *bubble, _ string) (string, error) {
		calls++
		n, err := Step(ctx, "long", func(ctx context.Context) (int, error) {
			if calls == 1 {
				<-ctx.Done()
			}
			return calls, nil
		})
		if n != 1 || err != nil {
			b.Errorf("got %v, %v; want n = 1, no error", n, err)
		}
		return "", context.Cause(ctx)
	}, func(b *bubble) {
		id := b.enqueue(work.With(""))
		b.work(10 * time.Second)
		b.want(id, jobs.Pending, jobs.ReasonShutdown)
		b.work(10 * time.Second)
		b.want(id, jobs.Completed, "")
	})
}

func TestRetryByHandKeepsTheStepsOfWhatFailed(t *testing.T) {
	done, fail := 0, true
	fake(t, Options{}, func(ctx context.Context, b *bubble, _ string) (string, error) {
		if _, err := Step(ctx, "once", func(context.Context) (int, error) { done++; return done, nil }); err != nil {
			return "", err
		}
		if fail {
			return "", errors.New("no")
		}
		return "", nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("", jobs.MaxAttempts(1)))
		again := func() {
			b.work(10 * time.Second)
			if moved, err := b.Retry(b.Context(), []int64{id}, 0); err != nil || !moved[0].Done {
				b.Errorf("got %+v, %v; want no error, moved[0].Done", moved, err)
			}
		}
		again()
		b.work(10 * time.Second)
		if b.want(id, jobs.Failed, jobs.ReasonError); done != 1 {
			b.Errorf("done %d times", done)
		}
		fail = false
		again()
		b.work(10 * time.Second)
		b.want(id, jobs.Completed, "")
		again()
		b.work(10 * time.Second)
		if b.want(id, jobs.Completed, ""); done != 2 {
			b.Errorf("what completed was done %d times", done)
		}
		if _, err := b.Delete(b.Context(), []int64{id}); err != nil {
			b.Error(err)
		}
		if steps, err := b.Steps(b.Context(), id); err != nil || len(steps) != 0 {
			b.Errorf("of a task that was deleted: %+v, %v", steps, err)
		}
	})
}

func TestAFunctionWithStepsCanBeCalledByHand(t *testing.T) {
	n, err := Step(t.Context(), "x", func(context.Context) (int, error) { return 7, nil })
	if n != 7 || err != nil {
		t.Errorf("got %v, %v; want n = 7, no error", n, err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(jobs.ErrCancelled)
	if err := Sleep(ctx, "x", time.Hour); !errors.Is(err, jobs.ErrCancelled) {
		t.Errorf("got %v; want Is(err, ErrCancelled)", err)
	}
}

package jobs

import (
	"time"
)

// Option changes a Spec. The options of With win over those of Define.
type Option func(*Spec)

// Queue puts the task into a queue. Defaults to "default".
func Queue(name string) Option { return func(s *Spec) { s.Queue = name } }

// Priority sets the priority: higher runs first. Defaults to 5.
func Priority(n int) Option { return func(s *Spec) { s.Priority = n } }

// Label sets a text that is shown in lists before the job.
func Label(text string) Option { return func(s *Spec) { s.Label = text } }

// In makes the task due after d. Defaults to now.
func In(d time.Duration) Option { return func(s *Spec) { s.In, s.RunAt = d, time.Time{} } }

// At makes the task due at t. A time in the past means now.
func At(t time.Time) Option { return func(s *Spec) { s.RunAt, s.In = t, 0 } }

// ExpiresIn cancels the task if it has not started d after it was due. Defaults to never.
func ExpiresIn(d time.Duration) Option { return func(s *Spec) { s.ExpiresIn = d } }

// Unique allows at most one unfinished task with this key in the database: enqueueing another returns the first one.
func Unique(key string) Option { return func(s *Spec) { s.UniqueKey, s.Replace = key, false } }

// UniqueReplace is Unique, but as long as the first task has not started, everything that is asked of the other becomes true of
// it: when it is due, too. Enqueueing again and again puts it off.
func UniqueReplace(key string) Option { return func(s *Spec) { s.UniqueKey, s.Replace = key, true } }

// After starts the task when all of these tasks have completed. If one fails or is cancelled, now or before, this task is
// cancelled with reason dependency. They must exist.
func After(ids ...int64) Option { return func(s *Spec) { s.After = ids } }

// AfterAny starts the task when all of these tasks have finished, however they ended. They must exist.
func AfterAny(ids ...int64) Option { return func(s *Spec) { s.AfterAny = ids } }

// Lane puts the task into a lane: of the tasks of one lane one runs at a time, over all workers and queues, highest priority
// first, then in the order of their ids.
func Lane(key string) Option { return func(s *Spec) { s.Lane = key } }

// MaxAttempts limits how often the task is started, losses apart. Defaults to 1 for commands and 10 for functions.
func MaxAttempts(n int) Option { return func(s *Spec) { s.MaxAttempts = n } }

// MaxLosses limits how often the task is started again after its worker was lost. Defaults to 3.
func MaxLosses(n int) Option { return func(s *Spec) { s.MaxLosses = n } }

// AtMostOnce never starts the task a second time: one attempt, and a loss is final.
func AtMostOnce() Option { return func(s *Spec) { s.MaxAttempts, s.MaxLosses = 1, 0 } }

// Timeout limits how long one attempt may run. Defaults to no limit.
func Timeout(d time.Duration) Option { return func(s *Spec) { s.Timeout = d } }

// KillAfter sets the time between TERM and KILL when a command is stopped. Defaults to 10 s.
func KillAfter(d time.Duration) Option { return func(s *Spec) { s.KillAfter = d } }

// Retry sets the backoff between attempts. Defaults to DefaultBackoff, whose strategy and limit a backoff without them takes; a
// delay of 0 starts the next attempt at once.
func Retry(b Backoff) Option {
	return func(s *Spec) {
		if b.Strategy == "" {
			b.Strategy = DefaultBackoff.Strategy
		}
		if b.Max == 0 {
			b.Max = max(DefaultBackoff.Max, b.Delay)
		}
		s.Backoff = b
	}
}

// RetryOn starts a command again only after these exit codes; others fail the task at once. Signals, timeouts and
// failures to start are retried whatever it says. Defaults to any code.
func RetryOn(codes Codes) Option { return func(s *Spec) { s.RetryOn = codes } }

// OutputLimit sets how many bytes of an attempt's output are kept: the first and the last of them. Defaults to 1 MiB;
// 0 keeps none.
func OutputLimit(bytes int64) Option { return func(s *Spec) { s.OutputLimit = bytes } }

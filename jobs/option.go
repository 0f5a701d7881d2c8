package jobs

import (
	"maps"
	"time"
)

// Option changes a Spec. Options given to With override those given to Define.
type Option func(*Spec)

// Queue sets the task's queue. The default is "default".
func Queue(name string) Option { return func(s *Spec) { s.Queue = name } }

// Priority sets the priority: a higher one runs first. The default is 5.
func Priority(n int) Option { return func(s *Spec) { s.Priority = n } }

// Label sets a text that lists show in front of the job.
func Label(text string) Option { return func(s *Spec) { s.Label = text } }

// Metadata adds texts by key, such as the trace or the tenant of the task. A
// key that the task has already, for example from Define, gets the new text. To
// remove a key, delete it from Spec.Metadata in an Option of your own. Metadata
// copies the map. Options.Metadata documents the limits.
func Metadata(texts map[string]string) Option {
	texts = maps.Clone(texts)
	return func(s *Spec) {
		all := make(map[string]string, len(s.Metadata)+len(texts))
		maps.Copy(all, s.Metadata)
		maps.Copy(all, texts)
		s.Metadata = all
	}
}

// In makes the task due after d. By default it is due at once.
func In(d time.Duration) Option { return func(s *Spec) { s.In, s.RunAt = d, time.Time{} } }

// At makes the task due at t. If t is in the past, the task is due at once.
func At(t time.Time) Option { return func(s *Spec) { s.RunAt, s.In = t, 0 } }

// ExpiresIn cancels the task if its first attempt has not started within d
// after its due time. The due time is that of At or In, or else the time at
// which the task was added. The task also expires while it is paused, or waits
// for other tasks, its lane, a limit or a full call. A task that has started
// once does not expire. The reason is ReasonExpired. By default a task does not
// expire.
func ExpiresIn(d time.Duration) Option { return func(s *Spec) { s.ExpiresIn = d } }

// DependsOn lets the task start when all of these tasks have completed. If one
// of them fails or is cancelled, even before this task is added, this task is
// cancelled with ReasonDependency. The tasks must exist.
func DependsOn(ids ...int64) Option { return func(s *Spec) { s.DependsOn = ids } }

// DependsOnAny lets the task start when all of these tasks have finished, in
// whatever state. The tasks must exist.
func DependsOnAny(ids ...int64) Option { return func(s *Spec) { s.DependsOnAny = ids } }

// Paused lets the task start only after somebody has resumed it. The task is
// blocked until then.
func Paused() Option { return func(s *Spec) { s.Paused = true } }

// Lane sets the task's lane key. Tasks with the same key run one at a time,
// even in different workers and queues; a limit of the lane (admin.SetLimit)
// allows more. Higher priorities run first, and tasks of the same priority run
// in the order of their ids.
func Lane(key string) Option { return func(s *Spec) { s.Lane = key } }

// MaxAttempts sets how often the task may start; losses do not count. The
// default is 1 for commands and 10 for functions.
func MaxAttempts(n int) Option { return func(s *Spec) { s.MaxAttempts = n } }

// MaxLosses sets how often the task may start again after its worker died or
// lost its lease. The default is 3.
func MaxLosses(n int) Option { return func(s *Spec) { s.MaxLosses = n } }

// AtMostOnce lets the task start only once: it sets MaxAttempts to 1 and
// MaxLosses to 0.
func AtMostOnce() Option { return func(s *Spec) { s.MaxAttempts, s.MaxLosses = 1, 0 } }

// Timeout sets how long one attempt may run. By default there is no limit.
func Timeout(d time.Duration) Option { return func(s *Spec) { s.Timeout = d } }

// KeepFor sets how long the task is kept after it has finished, in whatever
// state, at most ten years. It replaces WorkOptions.Keep and KeepFailed of all
// workers. In Define, it is the retention of the job. The deletion comes up to
// ten minutes later, because workers search at intervals, or earlier if
// MaxBytes of runner.Options needs the room. After 30 days the task may outlive
// the record of its worker.
func KeepFor(d time.Duration) Option { return func(s *Spec) { s.KeepFor = d } }

// WithBackoff sets the delay between attempts. By default it is 10 s after the
// first attempt, and doubles up to an hour. If b has no Strategy or no Max,
// they are BackoffExponential and an hour. With a Delay of 0 the next attempt
// starts at once.
func WithBackoff(b Backoff) Option {
	return func(s *Spec) {
		if b.Strategy == "" {
			b.Strategy = defaultBackoff.Strategy
		}
		if b.Max == 0 {
			b.Max = max(defaultBackoff.Max, b.Delay)
		}
		s.Backoff = b
	}
}

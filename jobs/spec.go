package jobs

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a task may hold. The schema checks the same numbers.
const (
	MaxArgs   = 1 << 20   // bytes of JSON
	MaxResult = 1 << 20   // bytes of JSON
	MaxDepth  = 1000      // objects and arrays of args and results within each other: SQLite refuses more
	MaxInput  = 16 << 20  // bytes on stdin
	MaxEnv    = 128 << 10 // bytes of the environment as JSON
	MaxError  = 8 << 10   // bytes of an error
	MaxPath   = 4 << 10   // bytes of a path
	MaxName   = 100       // characters of a queue, schedule or job
	MaxText   = 200       // bytes of a lane, unique key, label, user, step or report of progress
	MaxCodes  = 1000      // bytes of exit codes
	MaxAfter  = 50_000    // tasks that a task waits for
	MaxSteps  = 10_000    // steps and sleeps of a task
	MaxDelay  = 10 * 365 * 24 * time.Hour
)

// Defaults of a task that says nothing else.
const (
	DefaultQueue       = "default"
	DefaultPriority    = 5
	DefaultMaxLosses   = 3
	DefaultKillAfter   = 10 * time.Second
	DefaultOutputLimit = 1 << 20
	CommandAttempts    = 1  // max attempts of a command
	FuncAttempts       = 10 // max attempts of a registered function
)

// CommandJob is the name of the job that runs an argv. It is reserved.
const CommandJob = "command"

// Spec is what is asked: a task that does not exist yet. Make one with Command.With or Func.With; the zero Spec is not
// valid. Times and durations mean what they mean in Task.
type Spec struct {
	Job         string
	Args        json.RawMessage
	Label       string
	Queue       string
	Priority    int
	After       []int64 // start when these have completed; if one ends otherwise this one is cancelled
	AfterAny    []int64 // start when these have finished, however they end
	Lane        string
	UniqueKey   string
	Replace     bool          // an unfinished task with UniqueKey that has not started becomes this one, keeping its id
	RunAt       time.Time     // zero: now
	In          time.Duration // after enqueueing; RunAt and In exclude each other
	ExpiresIn   time.Duration // after it is due; 0: never
	ExpiresAt   time.Time     // zero: as ExpiresIn says; they exclude each other
	MaxAttempts int           // 0: the job's own default
	MaxLosses   int
	Timeout     time.Duration
	KillAfter   time.Duration
	Backoff     Backoff
	RetryOn     Codes
	OutputLimit int64

	Path    string
	Cwd     string
	Env     map[string]string
	EnvFile string
	Input   []byte

	// Earlier and EarlierAny are After and AfterAny for tasks that do not exist yet: the positions, from 0, of earlier Specs
	// of the same call of EnqueueAll or Add.
	Earlier    []int
	EarlierAny []int

	Schedule  string    // whose task it is; the Runner fills it in, as the next two
	Tick      time.Time // of Schedule; zero: it was run by hand
	CreatedBy string    // who asks
	Err       error     // why this Spec cannot be enqueued: Enqueue returns it, as exec.Cmd does
}

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

func newSpec(job string, options ...[]Option) Spec {
	s := Spec{Job: job, Queue: DefaultQueue, Priority: DefaultPriority, MaxLosses: DefaultMaxLosses,
		KillAfter: DefaultKillAfter, Backoff: DefaultBackoff, OutputLimit: DefaultOutputLimit}
	for _, list := range options {
		for _, option := range list {
			option(&s)
		}
	}
	return s
}

// Ordered says whether others decide where the task stands when it is added: it has a lane, or names tasks to wait for.
func (s *Spec) Ordered() bool {
	return s.Lane != "" || len(s.After)+len(s.AfterAny)+len(s.Earlier)+len(s.EarlierAny) > 0
}

// Task returns the task that the Spec asks for, enqueued at now: everything but its id. It does not validate.
func (s *Spec) Task(now time.Time) Task {
	t := Task{GenerationID: 1, Job: s.Job, Args: s.Args, Label: s.Label, Queue: s.Queue, State: Pending, Priority: s.Priority,
		Lane: s.Lane, UniqueKey: s.UniqueKey, RunAt: now.Add(s.In), MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, Timeout: s.Timeout,
		KillAfter: s.KillAfter, Backoff: s.Backoff, RetryOn: s.RetryOn, OutputLimit: s.OutputLimit, Path: s.Path, Cwd: s.Cwd,
		Env: s.Env, EnvFile: s.EnvFile, InputBytes: int64(len(s.Input)), Schedule: s.Schedule, Tick: s.Tick, CreatedAt: now,
		CreatedBy: s.CreatedBy, UpdatedAt: now}
	if !s.RunAt.IsZero() {
		t.RunAt = s.RunAt
	}
	if t.RunAt.After(now) {
		t.State = Scheduled
	} else if t.Tick.IsZero() { // one that is caught up was due at its tick, and expires from there
		t.RunAt = now
	}
	if s.ExpiresIn > 0 {
		t.ExpiresAt = t.RunAt.Add(s.ExpiresIn)
	}
	if !s.ExpiresAt.IsZero() {
		t.ExpiresAt = s.ExpiresAt
	}
	return t
}

// Validate returns the first thing that is wrong with the Spec: Err, or a *FieldError.
func (s *Spec) Validate() error {
	if s.Err != nil {
		return s.Err
	}
	for _, check := range []func() error{s.validateNames, s.validateArgs, s.validateNumbers, s.validateAfter, s.validateCommand} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) validateNames() error {
	if err := ValidJob(s.Job); err != nil {
		return err
	}
	if err := ValidQueue(s.Queue); err != nil {
		return err
	}
	for _, named := range [][2]string{{"label", s.Label}, {"lane", s.Lane}, {"unique_key", s.UniqueKey}, {"created_by", s.CreatedBy}} {
		if err := validKey(named[0], named[1]); err != nil {
			return err
		}
	}
	return nil
}

// validKey checks a label, lane or unique key.
func validKey(field, text string) error {
	if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return invalid(field, "%q: at most %d bytes of UTF-8 without control characters", text, MaxText)
	}
	return nil
}

func (s *Spec) validateAfter() error {
	for _, d := range []struct {
		field   string
		ids     []int64
		earlier []int
	}{{"after", s.After, s.Earlier}, {"after_any", s.AfterAny, s.EarlierAny}} {
		if n := len(d.ids) + len(d.earlier); n > MaxAfter {
			return invalid(d.field, "%d tasks; at most %d", n, MaxAfter)
		}
		for _, id := range d.ids {
			if id < 1 {
				return invalid(d.field, "%d is no task id", id)
			}
		}
	}
	return nil
}

func (s *Spec) validateArgs() error {
	switch {
	case len(s.Args) > MaxArgs:
		return invalid("args", "%d bytes; at most %d", len(s.Args), MaxArgs)
	case s.Args != nil && !json.Valid(s.Args):
		return invalid("args", "not JSON")
	case !utf8.Valid(s.Args):
		return invalid("args", "not UTF-8")
	case depth(s.Args) > MaxDepth:
		return invalid("args", "nested more than %d deep", MaxDepth)
	}
	if s.Job == CommandJob {
		_, err := Argv(s.Args)
		return err
	}
	return nil
}

// depth returns how many objects and arrays of a valid JSON text lie within each other.
func depth(text []byte) int {
	deep, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			deep++
			deepest = max(deepest, deep)
		case c == ']' || c == '}':
			deep--
		}
	}
	return deepest
}

func (s *Spec) validateNumbers() error {
	durations := []struct {
		field string
		value time.Duration
	}{{"run_at", s.In}, {"expires_in", s.ExpiresIn}, {"timeout", s.Timeout}, {"kill_after", s.KillAfter},
		{"backoff_delay", s.Backoff.Delay}, {"backoff_max", s.Backoff.Max}}
	for _, d := range durations {
		if d.value < 0 || d.value > MaxDelay {
			return invalid(d.field, "%v is out of range (0 to 10 years)", d.value)
		}
	}
	switch {
	case s.Priority < math.MinInt32 || s.Priority > math.MaxInt32:
		return invalid("priority", "%d is no 32-bit number", s.Priority)
	case s.MaxAttempts < 0 || s.MaxAttempts > math.MaxInt32:
		return invalid("max_attempts", "%d is out of range (1 or more)", s.MaxAttempts)
	case s.MaxLosses < 0 || s.MaxLosses > math.MaxInt32:
		return invalid("max_losses", "%d is out of range (0 or more)", s.MaxLosses)
	case s.OutputLimit < 0:
		return invalid("output_limit", "%d is negative", s.OutputLimit)
	case !slices.Contains([]Strategy{Fixed, Linear, Exponential}, s.Backoff.Strategy):
		return invalid("backoff", "%q is none of fixed, linear, exponential", s.Backoff.Strategy)
	case !s.RunAt.IsZero() && (s.RunAt.Year() < 1970 || s.RunAt.Year() > 9999):
		return invalid("run_at", "year %d is out of range", s.RunAt.Year())
	case s.Replace && s.UniqueKey == "":
		return invalid("unique_mode", "replace needs a unique_key")
	case !s.RunAt.IsZero() && s.In != 0:
		return invalid("run_at", "give a time or a delay, not both")
	case !s.ExpiresAt.IsZero() && (s.ExpiresAt.Year() < 1970 || s.ExpiresAt.Year() > 9999):
		return invalid("expires_at", "year %d is out of range", s.ExpiresAt.Year())
	case !s.ExpiresAt.IsZero() && s.ExpiresIn != 0:
		return invalid("expires_at", "give a time or a delay, not both")
	}
	if len(s.RetryOn) > MaxCodes {
		return invalid("retry_on", "%d bytes; at most %d", len(s.RetryOn), MaxCodes)
	}
	if err := s.RetryOn.Validate(); err != nil {
		return invalid("retry_on", "%v", err)
	}
	if s.RetryOn != "" && s.MaxAttempts < 2 {
		return invalid("retry_on", "needs max_attempts above 1")
	}
	return nil
}

func (s *Spec) validateCommand() error {
	if s.Job != CommandJob && (s.Path != "" || s.Cwd != "" || len(s.Env) > 0 || s.EnvFile != "" || len(s.Input) > 0) {
		return invalid("job", "path, cwd, env, env_file and input belong to commands, not to %s", s.Job)
	}
	if len(s.Input) > MaxInput {
		return invalid("input", "%d bytes; at most %d", len(s.Input), MaxInput)
	}
	for _, named := range [][2]string{{"path", s.Path}, {"cwd", s.Cwd}, {"env_file", s.EnvFile}} {
		field, path := named[0], named[1]
		if err := validText(field, path, MaxPath); err != nil {
			return err
		}
		if path != "" && !filepath.IsAbs(path) {
			return invalid(field, "%q is not absolute", path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if name == "" || strings.Contains(name, "=") {
			return invalid("env", "%q is no name of a variable", name)
		}
		if err := cmpErr(validText("env", name, MaxEnv), validText("env", s.Env[name], MaxEnv)); err != nil {
			return err
		}
	}
	if len(s.Env) > 0 {
		if object, err := MarshalArgs(s.Env); err != nil || len(object) > MaxEnv { // as it is kept: some characters take six bytes
			return invalid("env", "%d bytes as JSON; at most %d", len(object), MaxEnv)
		}
	}
	return nil
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func validText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return invalid(field, "%d bytes; at most %d", len(text), most)
	case !utf8.ValidString(text):
		return invalid(field, "%q is not UTF-8", text)
	case strings.IndexByte(text, 0) >= 0:
		return invalid(field, "%q holds a NUL byte", text)
	}
	return nil
}

// ValidQueue checks the name of a queue: [A-Za-z0-9][A-Za-z0-9._-]{0,99}.
func ValidQueue(name string) error { return validName("queue", name, "._-") }

// ValidJob checks the name of a job: as a queue, and ':' and '/' too.
func ValidJob(name string) error { return validName("job", name, "._-:/") }

func validName(field, name, marks string) error {
	ok := 0 < len(name) && len(name) <= MaxName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && strings.IndexByte(marks, c) >= 0
	}
	if !ok {
		return invalid(field, "%q is no name: a letter or digit, then at most %d letters, digits or %s", name, MaxName-1, marks)
	}
	return nil
}

package taskspec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"example.com/runner/jobs"
)

// OptionInfo defines an option of a task, for flags, help, the keys of a batch,
// JSON records, the database, the pages and the tables of the docs.
type OptionInfo struct {
	Key      string   // key in JSON, and name of the column in the view enqueue
	Flag     string   // name of the flag; empty if there is none
	Letter   string   // short name of the flag
	Value    string   // placeholder of the value in the help; empty for a flag without a value
	Group    string   // heading above the flag in the help
	Help     string   // description for the help in one line, without the default
	Zero     string   // what the help shows for a default that is 0 or empty, such as "never"
	Doc      string   // description in the docs; empty if it is the same as Help
	Min      int64    // minimum of a number other than 0, which is always valid
	Max      int64    // maximum of a number, or bytes of a map as JSON; 0 for the maximum of its type
	Words    []string // valid values, if there are only a few
	MaxKeys  int      // of a map; 0 for no maximum
	Secret   bool     // whether the values of a map are hidden until the user asks for them
	OneTask  bool     // whether tasks of schedules can't have the option
	Commands bool     // whether functions can't have the option

	column func(*jobs.Spec) Value       // pointer to the field, if the database has a column for it
	stored func(*jobs.Options) Value    // pointer to the field otherwise
	check  func(key, text string) error // of a text, or of a map's key
}

// Options lists all task options, in the order of the help and of the JSON
// records.
var Options = []*OptionInfo{
	{Key: "label", Group: "What to run", Flag: "label", Value: "TEXT",
		Help:   "name that lists show before the command",
		column: func(s *jobs.Spec) Value { return (*Text)(&s.Label) }, check: ValidKey},
	{Key: "queue", Group: "Order", Flag: "queue", Letter: "q", Value: "NAME", Help: "queue of the task",
		column: func(s *jobs.Spec) Value { return (*Text)(&s.Queue) },
		check:  func(_, text string) error { return ValidQueue(text) }},
	{Key: "priority", Group: "Order", Flag: "priority", Letter: "p", Value: "N", Min: math.MinInt32,
		Help:   "tasks of a higher priority start first",
		column: func(s *jobs.Spec) Value { return (*Number)(&s.Priority) }},
	{Key: "lane", Group: "Order", Flag: "lane", Value: "KEY",
		Help:   "tasks with the same key run one at a time, in order",
		column: func(s *jobs.Spec) Value { return (*Text)(&s.Lane) }, check: ValidKey},
	{Key: "unique_key", Group: "Order", Flag: "unique", Value: "KEY",
		Help:    "at most one unfinished task can have this key; a second enqueue adds no task and prints the id of the first task",
		OneTask: true,
		Doc:     "at most one unfinished task has this key. That of a function is JOB#KEY: it belongs to the job",
		column:  func(s *jobs.Spec) Value { return (*Text)(&s.UniqueKey) }, check: ValidKey},
	{Key: "unique_global", Group: "Order", Flag: "unique-global",
		Help: "share the unique key of a function with commands and other jobs", OneTask: true,
		Doc:    "whether the unique key of a function is shared with commands and other jobs: it then has no JOB# in front",
		column: func(s *jobs.Spec) Value { return (*Flag)(&s.Unique.Global) }},
	{Key: "unique_args", Group: "Order", Flag: "unique-args",
		Help: "derive the unique key from the job and its arguments", OneTask: true,
		column: func(s *jobs.Spec) Value { return (*Flag)(&s.Unique.Args) }},
	{Key: "after", Group: "When", Flag: "after", Value: "IDS",
		Help:    "start after these tasks complete; cancel this task if one does not; repeatable",
		OneTask: true,
		Doc:     "array of the ids of tasks that must complete before this task starts. JSON output leaves out tasks that have completed",
		column:  func(s *jobs.Spec) Value { return (*IDs)(&s.DependsOn) }},
	{Key: "after_any", Group: "When", Flag: "after-any", Value: "IDS",
		Help: "start after these tasks finish in any state; repeatable", OneTask: true,
		Doc:    "array of the ids of tasks that must finish, in any state, before this task starts. JSON output leaves out finished tasks",
		column: func(s *jobs.Spec) Value { return (*IDs)(&s.DependsOnAny) }},
	{Key: "in", Group: "When", Flag: "in", Value: "DUR", Help: "start after this delay", OneTask: true,
		column: func(s *jobs.Spec) Value { return (*Duration)(&s.In) }},
	{Key: "run_at", Group: "When", Flag: "at", Value: "TIME", Help: "start at TIME or later",
		Zero: "now", OneTask: true,
		Doc:    "earliest time at which the task may start",
		column: func(s *jobs.Spec) Value { return (*Moment)(&s.RunAt) }},
	{Key: "expires_in", Group: "When", Flag: "expires-in", Value: "DUR",
		Help:   "cancel the task if it has not started within this time after it became due",
		Zero:   "never",
		column: func(s *jobs.Spec) Value { return (*Duration)(&s.ExpiresIn) }},
	{Key: "expires_at", Help: "time at which runner cancels the task if it has not started",
		Zero: "never", OneTask: true,
		column: func(s *jobs.Spec) Value { return (*Moment)(&s.ExpiresAt) }},
	{Key: "max_attempts", Group: "Retry", Flag: "max-attempts", Value: "N",
		Help: "maximum number of attempts",
		Zero: "1 for a command, 10 for a function", Min: 1,
		Doc:    "maximum number of attempts; null means the maximum of the job, which is stored when the task first starts",
		column: func(s *jobs.Spec) Value { return (*Number)(&s.MaxAttempts) }},
	{Key: "max_losses", Group: "Retry", Flag: "max-losses", Value: "N",
		Help: "maximum number of restarts after the task lost its worker",
		Doc: "maximum number of restarts after the task lost its worker. If `max_losses` is 0 and `max_attempts` is 1, " +
			"the task starts at most once",
		column: func(s *jobs.Spec) Value { return (*Number)(&s.MaxLosses) }},

	{Key: "unique_for", Group: "Order", Flag: "unique-for", Value: "DUR",
		Help: "keep the unique key for at least this time after the enqueue",
		Zero: "until the task finishes", OneTask: true,
		Doc:    "time after the enqueue for which the task holds its unique key, even if it has finished; null for none",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.Unique.For) }},
	{Key: "unique_states", Group: "Order", Flag: "unique-states", Value: "STATE,...",
		Help: "also hold the unique key after the task has finished in one of these states", Zero: "none",
		OneTask: true,
		Doc:     "finished states in which the task holds its unique key, as in `completed,failed`; null for none",
		stored:  func(o *jobs.Options) Value { return (*States)(&o.Unique.States) }},
	{Key: "timeout", Group: "Retry", Flag: "timeout", Value: "DUR", Help: "time limit of an attempt",
		Zero:   "none",
		Doc:    "time limit of one attempt; null for none",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.Timeout) }},
	{Key: "kill_after", Group: "Retry", Flag: "kill-after", Value: "DUR",
		Help:   "time between SIGTERM and SIGKILL",
		Doc:    "when runner stops the command, time between the signals SIGTERM and SIGKILL",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.KillAfter) }},
	{Key: "backoff", Group: "Retry", Flag: "backoff", Help: "how the delay between attempts grows",
		Words:  []string{string(jobs.BackoffFixed), string(jobs.BackoffLinear), string(jobs.BackoffExponential)},
		stored: func(o *jobs.Options) Value { return (*Text)(&o.Backoff.Strategy) }},
	{Key: "backoff_delay", Group: "Retry", Flag: "backoff-delay", Value: "DUR",
		Help:   "delay before the second attempt, ±10 %",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.Backoff.Delay) }},
	{Key: "backoff_max", Group: "Retry", Flag: "backoff-max", Value: "DUR",
		Help:   "longest delay between attempts",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.Backoff.Max) }},
	{Key: "retry_on", Group: "Retry", Flag: "retry-on", Value: "CODES",
		Help: "exit codes that allow another attempt, such as 75,100-111", Zero: "any",
		Doc:    "exit codes after which another attempt may follow, as in `75,100-111`; null means all exit codes",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.RetryOn) }, check: validCodes},
	{Key: "output_limit", Group: "Environment", Flag: "output-limit", Value: "SIZE",
		Help:   "store at most this much output of each attempt; 0: none",
		Doc:    "maximum number of bytes of an attempt's output that are stored; 0 stores no output",
		stored: func(o *jobs.Options) Value { return (*Size)(&o.OutputLimit) }},
	{Key: "keep_for", Group: "Retry", Flag: "keep-for", Value: "DUR",
		Help: "delete the task this long after it has finished", Zero: "the times of the worker",
		Doc:    "time after its end for which the task is kept; null for the times of the workers (`work --keep`, `--keep-failed`)",
		stored: func(o *jobs.Options) Value { return (*Duration)(&o.KeepFor) }},
	{Key: "leave_children", Group: "Environment", Flag: "leave-children", Commands: true,
		Help:   "do not kill background processes, such as daemons, when the command exits by itself",
		Doc:    "whether processes that the command leaves behind live on after the command has exited by itself",
		stored: func(o *jobs.Options) Value { return (*Flag)(&o.LeaveChildren) }},
	{Key: "path", Help: "absolute path of the program", Zero: "the worker looks it up", Commands: true,
		Doc:    "absolute path of the program; null if the worker looks for the program in its `PATH`",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.Path) }, check: validPath},
	{Key: "cwd", Group: "Environment", Flag: "cwd", Letter: "C", Value: "DIR",
		Help: "working directory of the command", Zero: "the current directory", Commands: true,
		Doc:    "absolute path of the command's working directory; null for the working directory of the worker",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.Cwd) }, check: validPath},
	{Key: "env", Group: "Environment", Flag: "env", Letter: "e", Value: "NAME[=VALUE]",
		Max: MaxEnv, Secret: true, check: validVariable,
		Help: "set a variable; NAME alone copies it from this shell; repeatable", Commands: true,
		Doc: "object of variables that the command gets in addition to the environment of the worker. Without `--reveal`, JSON output " +
			"has null in place of each value",
		stored: func(o *jobs.Options) Value { return (*Texts)(&o.Env) }},
	{Key: "env_file", Group: "Environment", Flag: "env-file", Value: "FILE",
		Help: "file with NAME=VALUE lines, read at each start; values are literal", Commands: true,
		Doc:    "absolute path of a file of NAME=VALUE lines, read at the start of each attempt: a regular file of at most 1 MiB",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.EnvFile) }, check: validPath},
	{Key: "user", Group: "Resources", Flag: "user", Value: "NAME",
		Help: "user that runs the command; the worker must run as root",
		Zero: "the user of the worker", Commands: true,
		Doc:    "name or id of the user as whom the command runs; null for the user of the worker",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.User) }, check: validUser},
	{Key: "nice", Group: "Resources", Flag: "nice", Value: "N",
		Help: "niceness of the command, from -20 to 19", Min: -20, Max: 19,
		Commands: true, Doc: "niceness of the command, from -20 to 19; 0 for the niceness of the worker",
		stored: func(o *jobs.Options) Value { return (*Number)(&o.Nice) }},
	{Key: "ionice", Group: "Resources", Flag: "ionice", Value: "CLASS[:N]",
		Help: "priority of disk access: idle, best-effort[:0-7] or realtime[:0-7]",
		Zero: "what the system derives from the niceness", Commands: true,
		Doc:    "priority of disk access: `idle`, `best-effort:7`, `realtime:0` and so on; null for the default of the system",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.IONice) }, check: validIONice},
	{Key: "memory", Group: "Resources", Flag: "memory", Value: "SIZE",
		Help: "memory that all processes of the command may use; at least 1MiB",
		Zero: "no limit", Min: MinMemory, Commands: true,
		Doc:    "bytes of memory and swap that all processes of the command may use together; null for no limit",
		stored: func(o *jobs.Options) Value { return (*Size)(&o.Memory) }},
	{Key: "cpu", Group: "Resources", Flag: "cpu", Value: "PERCENT",
		Help: "CPU time of the command: 50% is half of one CPU, 200% is two",
		Zero: "no limit", Commands: true,
		Doc:    "limit of the CPU time of the command as a part of one CPU, such as `50%`, or `200%` for two CPUs; null for no limit",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.CPU) }, check: validCPU},
	{Key: "input", Group: "Environment", Flag: "input", Value: "FILE|-",
		Help: "file with the standard input of the command; read now", Zero: "none", Commands: true,
		Doc:    "standard input of the command, a text or a BLOB",
		column: func(s *jobs.Spec) Value { return (*Data)(&s.Input) }},

	{Key: "metadata", Group: "What to run", Flag: "meta", Value: "KEY=TEXT", Max: MaxMetadata,
		MaxKeys: MaxMetadataKeys, check: validMetadataKey,
		Help: "text of your own, such as tenant=acme, which the selector --meta finds; repeatable",
		Doc: "JSON object with keys and texts of your own, such as `{\"tenant\": \"acme\"}`. At most 32 keys and 4096 bytes. A key " +
			"begins with a letter or digit; after that it may also contain `._-:/`",
		stored: func(o *jobs.Options) Value { return (*Texts)(&o.Metadata) }},
	{Key: "on_failure", Group: "Hooks", Flag: "on-failure", Value: "CMD",
		Help:   "run CMD as a task if this task fails and is not retried",
		Doc:    "command for `/bin/sh -c` that runs as a task of its own if the task fails and is not retried",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.OnFailure) }, check: validHook},
	{Key: "on_success", Group: "Hooks", Flag: "on-success", Value: "CMD",
		Help:   "run CMD as a task when this task completes",
		Doc:    "command that runs as a task of its own if the task completes",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.OnSuccess) }, check: validHook},
	{Key: "on_recovery", Group: "Hooks", Flag: "on-recovery", Value: "CMD",
		Help: "run CMD as a task when this task completes and the previous task of its schedule or --unique key failed",
		Doc: "command that runs as a task of its own if the task completes and the previous task (of the same schedule, or with the same " +
			"unique key) failed",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.OnRecovery) }, check: validHook},
	{Key: "on_output", Group: "Hooks", Flag: "on-output", Value: "CMD",
		Help:   "run CMD as a task when this task ends and has printed something",
		Doc:    "command that runs as a task of its own if the task completes or fails and has printed something",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.OnOutput) }, check: validHook},
	{Key: "event", Help: "event that the task reports, if it is a hook", OneTask: true, Commands: true,
		Doc:    "if the task runs the command of a hook, the event that started the hook, such as `failed`; null for any other task",
		stored: func(o *jobs.Options) Value { return (*Text)(&o.Event) }, check: validEvent},
}

// optionOf returns the option with a key, or nil.
func optionOf(key string) *OptionInfo {
	if i := slices.IndexFunc(Options, func(o *OptionInfo) bool { return o.Key == key }); i >= 0 {
		return Options[i]
	}
	return nil
}

// Field returns the value of the option in s.
func (o *OptionInfo) Field(s *jobs.Spec) Value {
	if o.stored != nil {
		return o.stored(&s.Options)
	}
	return o.column(s)
}

// Stored reports whether the option is a field of jobs.Options, all of which
// the database stores in one column.
func (o *OptionInfo) Stored() bool { return o.stored != nil }

// Hint returns the placeholder of the value in the help.
func (o *OptionInfo) Hint() string { return cmp.Or(o.Value, strings.Join(o.Words, "|")) }

// Check returns an error if a value that a user wrote is invalid. It is
// stricter than Validate: in a Spec, 0 and an empty lane stand for the default.
func (o *OptionInfo) Check(v Value) error {
	if n, ok := v.(*Number); ok && int64(*n) < o.Min {
		return invalid(o.Key, "%d is out of range (%d to %d)", *n, o.Min, o.limit())
	}
	if o.Key == "lane" && v.Zero() {
		return invalid(o.Key, "is empty")
	}
	return v.check(o)
}

// limit returns the maximum of a number.
func (o *OptionInfo) limit() int64 { return cmp.Or(o.Max, math.MaxInt32) }

// CheckKnown returns an error if a task has options that this version doesn't
// know.
func CheckKnown(o *jobs.Options) error {
	if len(o.Unknown) == 0 {
		return nil
	}
	if _, unreadable := o.Unknown[""]; unreadable {
		return errors.New("the options of this task cannot be read: runner has not written them")
	}
	names := strings.Join(slices.Sorted(maps.Keys(o.Unknown)), ", ")
	return fmt.Errorf("unknown option %s: a newer version of runner enqueued this task", names)
}

// Default returns the default of the option. The caller must not change it.
func (o *OptionInfo) Default() Value { return o.Field(&defaultSpec) }

// New returns a copy of the default.
func (o *OptionInfo) New() Value { return o.Field(new(jobs.NewSpec(""))) }

// Same reports whether the option has the same value in a and b.
func (o *OptionInfo) Same(a, b *jobs.Spec) bool { return o.Field(a).equal(o.Field(b)) }

// Set sets the option in s.
func (o *OptionInfo) Set(s *jobs.Spec, v Value) {
	reflect.ValueOf(o.Field(s)).Elem().Set(reflect.ValueOf(v).Elem())
}

// IsDefault reports whether the option in s has its default value.
func (o *OptionInfo) IsDefault(s *jobs.Spec) bool { return o.Field(s).equal(o.Default()) }

// DefaultText returns the default for the help, or "" if the help doesn't show
// it.
func (o *OptionInfo) DefaultText() string {
	v := o.Default()
	if _, isNumber := v.(*Number); o.Zero != "" || v.Zero() && !isNumber {
		return o.Zero
	}
	return v.String()
}

// FlagText returns the text of an error for a person who typed flags: it names
// flags where the error names fields.
func FlagText(err *jobs.FieldError) string {
	field := flagOf(err.Field)
	switch err.Field {
	case "args": // the arguments may be words after --, so --args could mislead
	case "created_by", "name", "target":
		field = strings.ReplaceAll(err.Field, "_", " ")
	default:
		field = "--" + field
	}

	text := err.Msg
	for _, o := range Options { // a key without _, such as in or label, may be a word of English
		if strings.Contains(o.Key, "_") {
			text = strings.ReplaceAll(text, o.Key, "--"+flagOf(o.Key))
		}
	}

	return field + ": " + text
}

// flagOf returns the name of the flag that sets a field.
func flagOf(field string) string {
	if o := optionOf(field); o != nil && o.Flag != "" {
		return o.Flag
	}
	return strings.ReplaceAll(field, "_", "-")
}

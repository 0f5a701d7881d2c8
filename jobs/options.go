package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Options are the settings with which a worker executes the attempts of a task. The database stores them as one JSON object without the defaults,
// so that a new option needs no new column. No SQL statement depends on them. Schedules store them in the same form.
type Options struct {
	Timeout     time.Duration // of one attempt; 0 for no limit
	KillAfter   time.Duration // between SIGTERM and SIGKILL
	Backoff     Backoff
	RetryOn     Codes
	OutputLimit int64 // bytes of an attempt's output that are stored

	Path    string // absolute path of the program; if empty, the worker looks it up
	Cwd     string // working directory; if empty, the worker's
	Env     map[string]string
	EnvFile string

	// Unknown holds options that a newer version has written, by key. They are kept. A worker fails a task with such options instead of
	// running it without them.
	Unknown map[string]json.RawMessage
}

// DefaultOptions returns the options of a task that sets none.
func DefaultOptions() Options {
	return Options{KillAfter: DefaultKillAfter, Backoff: DefaultBackoff, OutputLimit: DefaultOutputLimit}
}

// storedOptions is the stored form of Options. Durations are in milliseconds, and a missing key has its default.
type storedOptions struct {
	Timeout      int64             `json:"timeout,omitempty"`
	KillAfter    *int64            `json:"kill_after,omitempty"`
	Backoff      Strategy          `json:"backoff,omitempty"`
	BackoffDelay *int64            `json:"backoff_delay,omitempty"`
	BackoffMax   *int64            `json:"backoff_max,omitempty"`
	RetryOn      Codes             `json:"retry_on,omitempty"`
	OutputLimit  *int64            `json:"output_limit,omitempty"`
	Path         string            `json:"path,omitempty"`
	Cwd          string            `json:"cwd,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	EnvFile      string            `json:"env_file,omitempty"`
}

// Encode returns the stored form: a JSON object, or nil if all options are defaults.
func (o *Options) Encode() (json.RawMessage, error) {
	if o.plain() {
		return nil, nil
	}
	stored := storedOptions{Timeout: millis(o.Timeout), RetryOn: o.RetryOn, Path: o.Path, Cwd: o.Cwd, Env: o.Env,
		EnvFile: o.EnvFile}
	set := func(to **int64, value, usual int64) {
		if value != usual {
			*to = &value
		}
	}
	set(&stored.KillAfter, millis(o.KillAfter), millis(DefaultKillAfter))
	set(&stored.BackoffDelay, millis(o.Backoff.Delay), millis(DefaultBackoff.Delay))
	set(&stored.BackoffMax, millis(o.Backoff.Max), millis(DefaultBackoff.Max))
	set(&stored.OutputLimit, o.OutputLimit, DefaultOutputLimit)
	if o.Backoff.Strategy != DefaultBackoff.Strategy {
		stored.Backoff = o.Backoff.Strategy
	}
	text, err := MarshalArgs(stored)
	if err != nil || len(o.Unknown) == 0 {
		return text, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, o.Unknown)
	return MarshalArgs(all)
}

// plain reports whether all options have their defaults.
func (o *Options) plain() bool {
	return o.Timeout == 0 && o.KillAfter == DefaultKillAfter && o.Backoff == DefaultBackoff && o.RetryOn == "" && o.OutputLimit == DefaultOutputLimit &&
		o.Path == "" && o.Cwd == "" && len(o.Env) == 0 && o.EnvFile == "" && len(o.Unknown) == 0
}

// DecodeOptions decodes the stored form; nil means the defaults. Options that this version does not know go to Unknown. If the text cannot be
// decoded at all, because plain SQL has written it, Unknown holds the text under the empty key.
func DecodeOptions(text []byte) Options {
	o := DefaultOptions()
	if len(text) == 0 {
		return o
	}
	stored := storedOptions{KillAfter: new(millis(o.KillAfter)), Backoff: o.Backoff.Strategy, BackoffDelay: new(millis(o.Backoff.Delay)),
		BackoffMax: new(millis(o.Backoff.Max)), OutputLimit: &o.OutputLimit}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var unknown map[string]json.RawMessage
	if err := decoder.Decode(&stored); err != nil {
		if unknown, err = unknownOptions(text); err == nil {
			err = json.Unmarshal(text, &stored)
		}
		if err != nil {
			o.Unknown = map[string]json.RawMessage{"": text}
			return o
		}
	}
	if stored.KillAfter == nil || stored.BackoffDelay == nil || stored.BackoffMax == nil || stored.OutputLimit == nil { // null
		o.Unknown = map[string]json.RawMessage{"": text}
		return o
	}
	return Options{Timeout: duration(stored.Timeout), KillAfter: duration(*stored.KillAfter),
		Backoff: Backoff{Strategy: stored.Backoff, Delay: duration(*stored.BackoffDelay), Max: duration(*stored.BackoffMax)},
		RetryOn: stored.RetryOn, OutputLimit: *stored.OutputLimit, Path: stored.Path, Cwd: stored.Cwd, Env: stored.Env,
		EnvFile: stored.EnvFile, Unknown: unknown}
}

// unknownOptions returns the keys of the stored form that this version does not know.
func unknownOptions(text []byte) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[storedOptions]()) {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(all, key)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// CheckKnown returns an error that names the options in Unknown, or nil if there are none.
func (o *Options) CheckKnown() error {
	if len(o.Unknown) == 0 {
		return nil
	}
	if _, unreadable := o.Unknown[""]; unreadable {
		return errors.New("the options of this task cannot be read: runner has not written them")
	}
	return fmt.Errorf("unknown option %s: a newer version of runner enqueued this task", strings.Join(slices.Sorted(maps.Keys(o.Unknown)), ", "))
}

// millis converts to milliseconds, rounding up, so that only a duration of 0 becomes 0.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// duration converts from milliseconds. A number that is out of range, which plain SQL may have written, becomes the nearest valid duration.
func duration(ms int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}

package taskspec

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// EncodeOptions encodes options for the database: as a JSON object without
// those that have their defaults, or as nil if all do. Durations are in
// milliseconds.
func EncodeOptions(o *jobs.Options) (json.RawMessage, error) {
	if hasDefaults(o) {
		return nil, nil
	}

	var text []byte
	for _, option := range Options {
		if option.stored == nil || option.stored(o).equal(option.stored(&defaultSpec.Options)) {
			continue
		}
		text = append(append(append(text, `,"`...), option.Key...), `":`...)
		var err error
		if text, err = appendValue(text, option.stored(o)); err != nil {
			return nil, err
		}
	}

	for _, key := range slices.Sorted(maps.Keys(o.Unknown)) {
		member, err := usercode.Marshal(map[string]json.RawMessage{key: o.Unknown[key]})
		if err != nil {
			return nil, err
		}
		text = append(append(text, ','), member[1:len(member)-1]...)
	}

	if text == nil {
		return nil, nil
	}

	text[0] = '{'
	return append(text, '}'), nil
}

// hasDefaults reports whether all options that the database stores have their
// defaults, as those of most tasks do. It names each field, because a loop over
// Options would take 10 % of the time of EnqueueSeq.
func hasDefaults(o *jobs.Options) bool {
	d := &defaultSpec.Options
	return o.Timeout == d.Timeout && o.KillAfter == d.KillAfter && o.Backoff == d.Backoff && o.RetryOn == d.RetryOn &&
		o.OutputLimit == d.OutputLimit && o.KeepFor == 0 && o.Unique.For == 0 && len(o.Unique.States) == 0 &&
		o.LeaveChildren == d.LeaveChildren && o.Path == d.Path && o.Cwd == d.Cwd && o.EnvFile == d.EnvFile &&
		o.Resources == d.Resources && o.Hooks == d.Hooks && o.Event == d.Event &&
		len(o.Env) == 0 && len(o.Metadata) == 0 && len(o.Unknown) == 0
}

// appendValue appends an option's value as JSON for the database.
func appendValue(text []byte, value Value) ([]byte, error) {
	if d, ok := value.(*Duration); ok {
		return strconv.AppendInt(text, millis(time.Duration(*d)), 10), nil
	}
	if t, ok := value.(*Text); ok { // the most frequent kind; as fast as this it costs EnqueueSeq nothing
		return appendText(text, string(*t))
	}
	more, err := json.Marshal(value)
	return append(text, more...), err
}

// appendText appends a JSON string.
func appendText(to []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			more, err := usercode.Marshal(text)
			return append(to, more...), err
		}
	}
	return append(append(append(to, '"'), text...), '"'), nil
}

// DecodeOptions decodes stored options. Those that this version doesn't know go
// into the field Unknown. If the text is invalid, because somebody has written
// it with SQL, the whole text goes there under the empty key.
func DecodeOptions(text []byte) jobs.Options {
	o := defaultSpec.Options
	if len(text) == 0 {
		return o
	}

	var members, unknown map[string]json.RawMessage
	valid := json.Unmarshal(text, &members) == nil && members != nil
	for key, value := range members {
		switch option := optionOf(key); {
		case option != nil && option.Stored():
			valid = valid && decodeValue(value, option.stored(&o))
		case unknown == nil:
			unknown = map[string]json.RawMessage{key: value}
		default:
			unknown[key] = value
		}
	}

	if !valid {
		o, unknown = defaultSpec.Options, map[string]json.RawMessage{"": text}
	}

	o.Unknown = unknown
	return o
}

// decodeValue decodes the stored value of an option, and returns false if it is
// invalid. It accepts null if the option's default is 0 or empty.
func decodeValue(raw []byte, value Value) bool {
	if raw[0] == 'n' {
		return value.Zero()
	}
	if d, ok := value.(*Duration); ok {
		var ms int64
		err := json.Unmarshal(raw, &ms)
		*d = Duration(duration(ms))
		return err == nil
	}
	return value.UnmarshalJSON(raw) == nil
}

// millis rounds up, because a duration above 0 must not become 0.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// duration clips milliseconds to the range of durations: a user may write any
// number with SQL.
func duration(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

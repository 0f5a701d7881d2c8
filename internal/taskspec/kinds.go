package taskspec

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// Value is the value of a task option: a pointer to a field of a Spec. Its type
// is the kind of the option.
type Value interface {
	// Parse reads what a user typed behind the flag. Lists and maps grow by it.
	Parse(text string, now time.Time) error

	// String returns the value as people read it, and as Parse does.
	String() string

	// UnmarshalJSON reads the value from a record or a batch. json.Marshal
	// writes it for a record.
	json.Unmarshaler

	Zero() bool // whether it is 0 or empty

	equal(Value) bool
	check(*OptionInfo) error
}

// These are the kinds.
type (
	Text     string            // also exit codes
	Number   int               // 0 may stand for another default
	Size     int64             // in bytes
	Duration time.Duration     // seconds in records, milliseconds in the database
	Moment   time.Time         // a time
	IDs      []int64           // ids of tasks
	Texts    map[string]string // variables or metadata
	Data     []byte            // base64 in JSON
	Flag     bool              // false by default
	States   []jobs.State      // sorted; one text, as in completed,failed
)

func (v *Text) Parse(text string, _ time.Time) error { *v = Text(text); return nil }
func (v *Text) String() string                       { return string(*v) }
func (v *Text) Zero() bool                           { return *v == "" }
func (v *Text) equal(other Value) bool               { return *v == *other.(*Text) }

// MarshalJSON returns null for an empty text.
func (v *Text) MarshalJSON() ([]byte, error) {
	if *v == "" {
		return []byte("null"), nil
	}
	return appendText(nil, string(*v))
}

func (v *Text) UnmarshalJSON(raw []byte) error { return decode(raw, (*string)(v), "must be a string") }

func (v *Text) check(o *OptionInfo) error {
	switch {
	case v.Zero() && o.Default().Zero():
	case o.check != nil:
		return o.check(o.Key, string(*v))
	case o.Words != nil && !slices.Contains(o.Words, string(*v)):
		return invalid(o.Key, "invalid value %q; use one of %s", *v, strings.Join(o.Words, ", "))
	}
	return nil
}

func (v *Number) String() string         { return strconv.Itoa(int(*v)) }
func (v *Number) Zero() bool             { return *v == 0 }
func (v *Number) equal(other Value) bool { return *v == *other.(*Number) }

func (v *Number) Parse(text string, _ time.Time) error {
	n, err := strconv.Atoi(text)
	*v = Number(n)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("out of range")
	case err != nil:
		return errors.New("invalid whole number")
	}

	return nil
}

func (v *Number) UnmarshalJSON(raw []byte) error {
	return decode(raw, (*int)(v), Short(raw)+" must be a whole number")
}

func (v *Number) check(o *OptionInfo) error {
	if n := int64(*v); n < o.Min && n != 0 || n > o.limit() {
		return invalid(o.Key, "%d is out of range (%d to %d)", n, o.Min, o.limit())
	}
	return nil
}

func (v *Size) String() string         { return humanize.ExactSize(int64(*v)) }
func (v *Size) Zero() bool             { return *v == 0 }
func (v *Size) equal(other Value) bool { return *v == *other.(*Size) }

func (v *Size) Parse(text string, _ time.Time) (err error) {
	*(*int64)(v), err = humanize.ParseSize(text)
	return err
}

func (v *Size) UnmarshalJSON(raw []byte) error {
	return decode(raw, (*int64)(v), Short(raw)+" must be a whole number")
}

func (v *Size) check(o *OptionInfo) error {
	if int64(*v) < o.Min && *v != 0 {
		return invalid(o.Key, "%d is out of range (%d or more)", *v, o.Min)
	}
	return nil
}

func (v *Duration) String() string         { return humanize.WriteDuration(time.Duration(*v)) }
func (v *Duration) Zero() bool             { return *v == 0 }
func (v *Duration) equal(other Value) bool { return *v == *other.(*Duration) }

func (v *Duration) Parse(text string, _ time.Time) (err error) {
	*(*time.Duration)(v), err = humanize.ParseDuration(text)
	return err
}

// MarshalJSON returns a number of seconds with at most three decimals: 2.1,
// never 2.0999.
func (v *Duration) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Duration(*v).Milliseconds())/1000, 'f', -1, 64), nil
}

// UnmarshalJSON rounds to milliseconds, but a value above 0 to at least one.
func (v *Duration) UnmarshalJSON(raw []byte) error {
	seconds, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return errors.New("must be a number of seconds")
	case err != nil || seconds < 0 || seconds > MaxDelay.Seconds():
		return fmt.Errorf("%s is out of range (0 to 10 years, in seconds)", Short(raw))
	}

	*v = Duration(math.Round(seconds*1000)) * Duration(time.Millisecond)
	if seconds > 0 {
		*v = max(*v, Duration(time.Millisecond))
	}
	return nil
}

func (v *Duration) check(o *OptionInfo) error {
	if d := time.Duration(*v); d < 0 || d > MaxDelay {
		return invalid(o.Key, "%v is out of range (0 to 10 years)", d)
	}
	return nil
}

func (v *Moment) String() string         { return time.Time(*v).UTC().Format(time.RFC3339Nano) }
func (v *Moment) Zero() bool             { return time.Time(*v).IsZero() }
func (v *Moment) equal(other Value) bool { return time.Time(*v).Equal(time.Time(*other.(*Moment))) }

func (v *Moment) Parse(text string, now time.Time) error {
	at, err := humanize.ParseTime(text, now, time.Local)
	*v = Moment(at)
	return err
}

func (v *Moment) UnmarshalJSON(raw []byte) error {
	text := ""
	if err := decode(raw, &text, "must be a string"); err != nil || text == "" {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("invalid time %q; use 2026-01-31T15:04:05Z", text)
	}
	*v = Moment(at)
	return nil
}

func (v *Moment) check(o *OptionInfo) error {
	if year := time.Time(*v).Year(); !v.Zero() && (year < 1970 || year > 9999) {
		return invalid(o.Key, "year %d is out of range", year)
	}
	return nil
}

func (v *IDs) Zero() bool             { return len(*v) == 0 }
func (v *IDs) equal(other Value) bool { return slices.Equal(*v, *other.(*IDs)) }
func (v *IDs) UnmarshalJSON(raw []byte) error {
	return decode(raw, (*[]int64)(v), "must be an array of ids")
}

func (v *IDs) String() string {
	return strings.NewReplacer("[", "", "]", "", " ", ",").Replace(fmt.Sprint([]int64(*v)))
}

func (v *IDs) Parse(text string, _ time.Time) error {
	ids, err := ParseIDs(text)
	*v = append(*v, ids...)
	return err
}

func (v *IDs) check(o *OptionInfo) error {
	for _, id := range *v {
		if id < 1 {
			return invalid(o.Key, "invalid task id %d", id)
		}
	}
	return nil
}

// ParseIDs parses one task id, or several that are separated by commas.
func ParseIDs(text string) ([]int64, error) {
	var ids []int64
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id < 1 || word[0] == '+' {
			return nil, errors.New("invalid task id; use 41 or 41,42")
		}
		ids = append(ids, id)
	}

	return ids, nil
}

// String returns the keys only, because the values may be secret.
func (v *Texts) String() string         { return strings.Join(slices.Sorted(maps.Keys(*v)), " ") }
func (v *Texts) Zero() bool             { return len(*v) == 0 }
func (v *Texts) equal(other Value) bool { return maps.Equal(*v, *other.(*Texts)) }

func (v *Texts) Parse(text string, _ time.Time) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || ValidMetadataKey(key) != nil {
		return errors.New("invalid metadata; use KEY=TEXT, where KEY is a letter or digit, then at most 99 of A-Z a-z 0-9 . _ - : /")
	}
	if *v == nil {
		*v = Texts{}
	}
	(*v)[key] = value
	return nil
}

// MarshalJSON returns null for an empty map.
func (v *Texts) MarshalJSON() ([]byte, error) {
	if len(*v) == 0 {
		return []byte("null"), nil
	}
	return usercode.Marshal(map[string]string(*v))
}

// UnmarshalJSON refuses a null, which stands for a value that a record hides.
func (v *Texts) UnmarshalJSON(raw []byte) error {
	if raw[0] != '{' {
		return errors.New("must be an object")
	}

	var byKey map[string]*string
	if json.Unmarshal(raw, &byKey) != nil {
		return errors.New("every value must be a string")
	}

	*v = make(Texts, len(byKey))
	for key, text := range byKey {
		if text == nil {
			return fmt.Errorf("%s is hidden; export with --reveal", key)
		}
		(*v)[key] = *text
	}

	return nil
}

func (v *Texts) check(o *OptionInfo) error {
	if len(*v) == 0 {
		return nil
	}

	for _, key := range slices.Sorted(maps.Keys(*v)) {
		if err := cmp.Or(o.check(o.Key, key), validText(o.Key, (*v)[key], int(o.Max))); err != nil {
			return err
		}
	}

	if o.MaxKeys > 0 && len(*v) > o.MaxKeys {
		return invalid(o.Key, "%d keys; at most %d", len(*v), o.MaxKeys)
	}
	// The limit also applies to the whole map as JSON, where some characters
	// take six bytes.
	if object, err := usercode.Marshal(*v); err != nil || int64(len(object)) > o.Max {
		return invalid(o.Key, "%d bytes as JSON; at most %d", len(object), o.Max)
	}

	return nil
}

// String returns only the size: the data may be long and secret.
func (v *Data) String() string                       { return humanize.Size(int64(len(*v))) }
func (v *Data) Parse(text string, _ time.Time) error { *v = Data(text); return nil }
func (v *Data) Zero() bool                           { return len(*v) == 0 }
func (v *Data) equal(other Value) bool               { return bytes.Equal(*v, *other.(*Data)) }

func (v *Data) UnmarshalJSON(raw []byte) error {
	text := ""
	if err := decode(raw, &text, "must be a string"); err != nil || text == "" {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errors.New("is not base64")
	}
	*v = data
	return nil
}

func (v *Data) check(o *OptionInfo) error {
	if len(*v) > MaxInput {
		return invalid(o.Key, "%d bytes; at most %d", len(*v), MaxInput)
	}
	return nil
}

func (v *Flag) String() string          { return strconv.FormatBool(bool(*v)) }
func (v *Flag) Zero() bool              { return !bool(*v) }
func (v *Flag) equal(other Value) bool  { return *v == *other.(*Flag) }
func (v *Flag) check(*OptionInfo) error { return nil }
func (v *Flag) UnmarshalJSON(raw []byte) error {
	return decode(raw, (*bool)(v), "must be true or false")
}

func (v *Flag) Parse(text string, _ time.Time) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("invalid value; use true or false")
	}
	*v = Flag(on)
	return nil
}

func (v *States) Zero() bool                   { return len(*v) == 0 }
func (v *States) equal(other Value) bool       { return slices.Equal(*v, *other.(*States)) }
func (v *States) MarshalJSON() ([]byte, error) { return (*Text)(new(v.String())).MarshalJSON() }

func (v *States) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(*v), "[]"), " ", ",")
}

func (v *States) Parse(text string, _ time.Time) error {
	*v = nil
	if text == "" {
		return nil
	}

	for name := range strings.SplitSeq(text, ",") {
		*v = append(*v, jobs.State(name))
	}
	slices.Sort(*v)
	*v = slices.Compact(*v)
	return nil
}

func (v *States) UnmarshalJSON(raw []byte) error {
	text := ""
	if err := decode(raw, &text, "must be a string"); err != nil {
		return err
	}
	return v.Parse(text, time.Time{})
}

func (v *States) check(o *OptionInfo) error {
	for _, state := range *v {
		if !state.Finished() {
			return invalid(o.Key, "%q is not completed, failed or cancelled; a task always holds its key until it finishes", state)
		}
	}
	return nil
}

func decode[T any](raw []byte, to *T, wrong string) error {
	if json.Unmarshal(raw, to) != nil {
		return errors.New(wrong)
	}
	return nil
}

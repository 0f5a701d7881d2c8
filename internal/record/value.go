package record

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// The following types and functions convert values of Go to the values of records.

// revealed returns an environment with its values.
func revealed(env map[string]string) map[string]*string {
	shown := hidden(env)
	for name, value := range env {
		shown[name] = &value
	}
	return shown
}

// encoded returns the input as base64, or nil for nil.
func encoded(input []byte) *string {
	if input == nil {
		return nil
	}
	return new(base64.StdEncoding.EncodeToString(input))
}

// texts returns texts by key, or nil if there are none.
func texts(byKey map[string]string) map[string]string {
	if len(byKey) == 0 {
		return nil
	}
	return byKey
}

// hidden returns an environment with its names but without its values.
func hidden(env map[string]string) map[string]*string {
	if len(env) == 0 {
		return nil
	}
	names := make(map[string]*string, len(env))
	for name := range env {
		names[name] = nil
	}
	return names
}

// Stamp is a time in JSON: RFC 3339 in UTC with milliseconds. The zero time is null.
type Stamp time.Time

const StampLayout = "2006-01-02T15:04:05.000Z07:00"

// String returns the time in the format of JSON and of lines for other programs. The zero time is an empty string.
func (s Stamp) String() string {
	if t := time.Time(s); !t.IsZero() {
		return t.UTC().Format(StampLayout)
	}
	return ""
}

// MarshalJSON implements json.Marshaler.
func (s Stamp) MarshalJSON() ([]byte, error) { return s.appendJSON(nil), nil }

func (s Stamp) appendJSON(text []byte) []byte {
	t := time.Time(s)
	if t.IsZero() {
		return append(text, "null"...)
	}
	return append(t.UTC().AppendFormat(append(text, '"'), StampLayout), '"')
}

// Seconds is a duration in JSON: a number of seconds with at most three decimals.
type Seconds time.Duration

// String returns the number in the format of JSON and of lines for other programs: 2.1, never 2.0999.
func (s Seconds) String() string {
	return strconv.FormatFloat(float64(time.Duration(s).Milliseconds())/1000, 'f', -1, 64)
}

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// Known returns a pointer to a value, or nil for the zero value. Nil is null in JSON.
func Known[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// List returns the record of each value of a list.
func List[T, R any](list []T, record func(T) R) []R {
	made := make([]R, len(list))
	for i, one := range list {
		made[i] = record(one)
	}
	return made
}

// Raw returns JSON text unchanged, so that numbers of any size keep their digits. It returns invalid JSON as a JSON string, because older
// versions of SQLite may have accepted it. Without this conversion, one invalid row would make the output of all rows fail.
func Raw(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || json.Valid(text) && utf8.Valid(text) {
		return text
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // marshalling a string never fails
	}
	return quoted
}

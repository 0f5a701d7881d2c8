package ui

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// These types and functions convert values of Go to values of a Record.

// Stamp is a time that becomes RFC 3339 in JSON, in UTC with milliseconds. The
// zero time becomes null.
type Stamp time.Time

const StampLayout = "2006-01-02T15:04:05.000Z07:00"

// String returns what JSON has, but an empty text for the zero time.
func (s Stamp) String() string {
	if t := time.Time(s); !t.IsZero() {
		return t.UTC().Format(StampLayout)
	}
	return ""
}

// MarshalJSON implements json.Marshaler.
func (s Stamp) MarshalJSON() ([]byte, error) { return json.Marshal(Known(s.String())) }

// Seconds is a duration that becomes a number of seconds in JSON, with at most
// three decimals.
type Seconds time.Duration

// String returns what JSON has: 2.1, never 2.0999.
func (s Seconds) String() string {
	return strconv.FormatFloat(float64(time.Duration(s).Milliseconds())/1000, 'f', -1, 64)
}

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// Known returns a pointer to a value. For the zero value it's nil, which
// becomes null in JSON.
func Known[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// Raw returns JSON text unchanged, so long numbers keep all digits. Invalid
// JSON becomes a JSON string: older versions of SQLite may have accepted it,
// and a single value must not break the output of a whole list.
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

// hidden returns variables with null in place of their values.
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

// Records returns what record makes of each element of a list.
func Records[T, R any](list []T, record func(T) R) []R {
	made := make([]R, len(list))
	for i, one := range list {
		made[i] = record(one)
	}
	return made
}

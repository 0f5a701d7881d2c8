package ui

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Record is a JSON object whose keys have an order. It is what --json and
// --format print, and its values are the fields of a line in a pipe.
//
// Users have programs that read records. So a record always has all its keys, in
// the same order, and null means unknown. A new version may add keys, but it
// doesn't rename or remove any. docs/json.md describes them.
type Record []Member

// Member is a key of a Record and its value.
type Member struct {
	Key   string
	Value any
}

// NewRecord returns a record with these keys and values: key, value, key, value.
func NewRecord(pairs ...any) Record { return Record{}.With(pairs...) }

// With returns the record with additional keys.
func (r Record) With(pairs ...any) Record {
	r = slices.Grow(r, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		r = append(r, Member{pairs[i].(string), pairs[i+1]})
	}
	return r
}

// Only returns the members with these keys, in their order.
func (r Record) Only(keys ...string) Record {
	some := make(Record, len(keys))
	for i, key := range keys {
		some[i] = r[r.index(key)]
	}
	return some
}

// Set replaces the value of a key.
func (r Record) Set(key string, value any) { r[r.index(key)].Value = value }

func (r Record) index(key string) int {
	return slices.IndexFunc(r, func(m Member) bool { return m.Key == key })
}

// Get returns the value of a key.
func (r Record) Get(key string) any { return r[r.index(key)].Value }

// Values returns the values in their order.
func (r Record) Values() []any {
	values := make([]any, len(r))
	for i, m := range r {
		values[i] = m.Value
	}
	return values
}

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for _, m := range r {
		text.WriteString(separator + `"` + m.Key + `":`)
		if err := encoder.Encode(m.Value); err != nil {
			return nil, err
		}
		separator = ","
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// Text returns a value as text: what it is in JSON, but null is empty, and a
// string has no quotes.
func Text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case int64:
		return strconv.FormatInt(value, 10)
	}
	var line bytes.Buffer
	if err := WriteJSON(&line, value); err != nil {
		return err.Error()
	}
	text := string(bytes.TrimSpace(line.Bytes()))
	if text == "null" {
		return ""
	}
	if text[0] == '"' {
		_ = json.Unmarshal([]byte(text), &text) // it is a valid string
	}
	return text
}

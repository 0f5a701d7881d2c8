package ui

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Record is an answer, declared once for everybody who reads it: --json and
// --format print its keys, a line in a pipe has its values, and a table its
// texts.
//
// Users have programs that read records. So a record always has all its keys,
// in the same order, and null means unknown. A new version may add keys, but it
// doesn't rename or remove any. docs/json.md describes them.
type Record []Member

// Member is a value of a Record: a key of the JSON object, a column of the
// table, or both.
type Member struct {
	Key   string // empty if the JSON object doesn't have the value
	Value any

	Name   string              // heading of the column; empty if the table doesn't have the value
	Text   string              // what people read in place of the value
	Right  bool                // whether texts are at the right edge of the column
	Narrow bool                // whether texts take at most a third of the terminal
	Drop   int                 // on a narrow terminal, columns go in this order, lowest first; 0: never
	Usual  string              // the column is left out if all its texts are this one
	Paint  func(string) Colour // returns the colour for a text; may be nil
}

// Untitled is the Name of a column without a heading.
const Untitled = " "

// NewRecord returns a record of keys, each before its value, and of whole
// Members.
func NewRecord(parts ...any) Record { return Record{}.With(parts...) }

// With returns the record with additional members; see NewRecord.
func (r Record) With(parts ...any) Record {
	r = slices.Grow(r, len(parts)/2)
	for i := 0; i < len(parts); i++ {
		m, whole := parts[i].(Member)
		if !whole {
			m = Member{Key: parts[i].(string), Value: parts[i+1]}
			i++
		}
		r = append(r, m)
	}

	return r
}

// Pick returns the members with these keys, in their order.
func (r Record) Pick(keys ...string) Record {
	some := make(Record, len(keys))
	for i, key := range keys {
		some[i] = r[r.index(key)]
	}
	return some
}

func (r Record) index(key string) int {
	return slices.IndexFunc(r, func(m Member) bool { return m.Key == key || m.Name == key })
}

// Values returns the values of these keys or columns; without names, those of
// all keys.
func (r Record) Values(names ...string) (values []any) {
	for _, name := range names {
		values = append(values, r[r.index(name)].Value)
	}

	for _, m := range r {
		if len(names) == 0 && m.Key != "" {
			values = append(values, m.Value)
		}
	}

	return values
}

func (m Member) text() string {
	if m.Text != "" {
		return m.Text
	}
	return Text(m.Value)
}

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for _, m := range r {
		if m.Key == "" {
			continue
		}
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
	case nil:
		return ""
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

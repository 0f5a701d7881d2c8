// Package taskjson encodes the arguments and results of tasks as JSON, and decodes the arguments of commands. Package jobs uses it, so it
// knows no type of package jobs.
package taskjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"example.com/runner/internal/jsonscan"
)

// Limits of JSON that tasks store.
const (
	MaxResult = 1 << 20 // bytes of a result
	MaxDepth  = 1000    // nesting depth of arguments and results; SQLite's own limit
)

// Marshal encodes a value as the JSON that tasks store: without a newline, and with <, > and & unescaped.
func Marshal(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// MarshalResult encodes a value as a task's result. It returns an error if the result would not be valid (see ValidResult).
func MarshalResult(value any) (json.RawMessage, error) {
	result, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if err := ValidResult(result); err != nil {
		return nil, err
	}
	return result, nil
}

// ValidResult returns an error unless text can be stored as a result: JSON in UTF-8, at most MaxResult bytes and MaxDepth levels.
func ValidResult(text []byte) error {
	switch {
	case len(text) > MaxResult:
		return fmt.Errorf("result: %d bytes; at most %d", len(text), MaxResult)
	case !json.Valid(text):
		return errors.New("result: not JSON")
	case !utf8.Valid(text):
		return errors.New("result: not UTF-8")
	case jsonscan.Depth(text) > MaxDepth:
		return fmt.Errorf("result: nested more than %d deep", MaxDepth)
	}
	return nil
}

package usercode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// These limits apply to the arguments and results of tasks.
const (
	MaxResult = 1 << 20 // bytes of a result
	MaxDepth  = 1000    // nesting depth; SQLite has the same limit
)

// Marshal encodes a value as JSON for a task: without a newline at the end, and
// without escaping <, > and &.
func Marshal(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// MarshalResult encodes a value as the result of a task or step.
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

// ValidResult returns an error unless text can be the result of a task.
func ValidResult(text []byte) error {
	switch {
	case len(text) > MaxResult:
		return fmt.Errorf("result: %d bytes; at most %d", len(text), MaxResult)
	case !json.Valid(text):
		return errors.New("result: not JSON")
	case !utf8.Valid(text):
		return errors.New("result: not UTF-8")
	case Depth(text) > MaxDepth:
		return fmt.Errorf("result: nested more than %d deep", MaxDepth)
	}
	return nil
}

// Depth returns how deeply objects and arrays are nested in valid JSON.
func Depth(text []byte) int {
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

// Package jsonscan finds the members of a JSON object without decoding their values. The text must be valid JSON; see json.Valid.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// Members yields the keys and values of a valid JSON object in order. It decodes the keys and leaves the values as JSON. The results may
// share memory with text.
func Members(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := Blank(text, Blank(text, 0)+1) // position after the brace
		for text[i] != '}' {
			end := Value(text, i)
			key := text[i+1 : end-1]
			if bytes.IndexByte(key, '\\') >= 0 {
				decoded, err := Unquote(text[i:end])
				if err != nil {
					return // an error is impossible if the text is valid JSON
				}
				key = []byte(decoded)
			}
			i = Blank(text, Blank(text, end)+1) // position after the colon
			end = Value(text, i)
			if !yield(key, text[i:end]) {
				return
			}
			if i = Blank(text, end); text[i] == ',' {
				i = Blank(text, i+1)
			}
		}
	}
}

// Blank skips white space: it returns the position of the first byte that is not white space, from position i on.
func Blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// Value returns the position after the value that begins at i.
func Value(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			for i < len(text) && strings.IndexByte(",]} \t\r\n", text[i]) < 0 {
				i++
			}
			return i
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// Unquote decodes a JSON string.
func Unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
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

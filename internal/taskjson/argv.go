package taskjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// argument is a word of a command. In JSON it is a string. A word that is not UTF-8 is an object instead, because encoding/json would
// change the bytes of such a string.
type argument string

// encoded is the JSON object for a word that is not UTF-8. encoding/json writes the bytes as base64.
type encoded struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (a argument) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(a)) {
		return Marshal(string(a))
	}
	return json.Marshal(encoded{[]byte(a)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *argument) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return json.Unmarshal(text, (*string)(a))
	}
	var e encoded
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&e)
	*a = argument(e.Base64)
	return err
}

// MarshalArgv encodes the words of a command. A word that is not UTF-8 becomes {"base64": "..."}.
func MarshalArgv(argv []string) (json.RawMessage, error) {
	if !slices.ContainsFunc(argv, func(word string) bool { return !utf8.ValidString(word) }) {
		return Marshal(argv)
	}
	words := make([]argument, len(argv))
	for i, word := range argv {
		words[i] = argument(word)
	}
	return Marshal(words)
}

// Argv decodes the words of a command. They are a JSON array of strings; the first one must not be empty. A word that is not UTF-8 is an
// object with its bytes as base64, such as {"base64": "YQ//"}.
func Argv(args json.RawMessage) ([]string, error) {
	var words []*argument
	if err := json.Unmarshal(args, &words); err != nil || len(words) == 0 {
		return nil, errors.New("a command needs a JSON array of strings, its argv")
	}
	argv := make([]string, len(words))
	for i, word := range words {
		if word == nil || strings.IndexByte(string(*word), 0) >= 0 {
			return nil, fmt.Errorf("argument %d of the command is not a string, or contains a NUL byte", i+1)
		}
		argv[i] = string(*word)
	}
	if argv[0] == "" {
		return nil, errors.New("the command is empty")
	}
	return argv, nil
}

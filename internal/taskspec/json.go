package taskspec

import (
	"bytes"
	"encoding/json"
	"strings"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// Short returns JSON for an error message, cut to 40 bytes.
func Short(raw []byte) string {
	if len(raw) > 40 {
		return strings.ToValidUTF8(string(raw[:37]), "") + "..."
	}
	return string(raw)
}

// Argv decodes the words of a command: a JSON array of strings. A word that
// isn't UTF-8 is an object with its bytes, such as {"base64": "YQ//"}. The
// error is a *jobs.FieldError.
func Argv(args json.RawMessage) ([]string, error) {
	var words []*word
	if err := json.Unmarshal(args, &words); err != nil || len(words) == 0 {
		return nil, invalid("args", "a command needs a JSON array of strings, its argv")
	}

	argv := make([]string, len(words))
	for i, word := range words {
		if word == nil || strings.IndexByte(string(*word), 0) >= 0 {
			return nil, invalid("args", "argument %d of the command is not a string, or contains a NUL byte", i+1)
		}
		argv[i] = string(*word)
	}

	if argv[0] == "" {
		return nil, invalid("args", "the command is empty")
	}

	return argv, nil
}

type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return json.Unmarshal(text, (*string)(w))
	}
	var encoded struct{ Base64 []byte }
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&encoded)
	*w = word(encoded.Base64)
	return err
}

// isPlainArgv returns true only if Argv accepts the JSON, and takes a tenth of
// its time. It returns false for any escape, which might stand for a NUL byte.
func isPlainArgv(args []byte) bool {
	if len(args) < 4 || args[0] != '[' || args[1] != '"' || args[2] == '"' || bytes.IndexByte(args, '\\') >= 0 {
		return false
	}

	quoted := false
	for _, c := range args[1 : len(args)-1] {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && c != ',' && c != ' ':
			return false
		}
	}

	return args[len(args)-1] == ']'
}

// ProgressJSON returns the progress as JSON for the database: an object with
// done, total and text, where null means unknown. It returns nil for nil.
func ProgressJSON(p *jobs.Progress) json.RawMessage {
	if p == nil {
		return nil
	}

	text, err := usercode.Marshal(struct {
		Done  int64   `json:"done"`
		Total *int64  `json:"total"`
		Text  *string `json:"text"`
	}{p.Done, known(&p.Total), known(&p.Text)})
	if err != nil {
		panic(err) // cannot happen: JSON can represent all numbers and texts
	}
	return text
}

// known returns nil for a pointer to a zero value.
func known[T comparable](v *T) *T {
	if *v == *new(T) {
		return nil
	}
	return v
}

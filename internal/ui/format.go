package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"example.com/runner/internal/humanize"
)

// NewFormat returns a function that prints a record with the template of
// --format, as one line. The template is a Go text/template that uses the keys
// of the record.
//
// NewFormat converts \t to a tab and \n to a newline, because a shell doesn't
// do that. It converts nothing within {{ }}.
func NewFormat(p *Printer, text string) (func(Record) error, error) {
	if !strings.Contains(text, "{{") { // --format json, as in other tools, would print this word for each record
		try := `--format '{{.id}}\t{{.state}}'`
		if strings.Contains(text, "json") {
			try = "--json"
		}
		return nil, Usage("--format %q is no template", text).
			Because("it would print this text for each record").Hint("%s", try)
	}

	t, err := template.New("--format").Option("missingkey=error").
		Funcs(template.FuncMap{"json": templateJSON}).Parse(unescape(text))
	if err != nil {
		return nil, Usage("--format: %s", templateError(err)).Hint(`--format '{{.id}}\t{{.state}}'`)
	}

	return func(r Record) error { return printFormatted(p, t, r) }, nil
}

func printFormatted(p *Printer, t *template.Template, r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber() // keeps all digits of long integers
	var keys map[string]any
	if err := decoder.Decode(&keys); err != nil {
		return fmt.Errorf("--format: %w", err)
	}

	for key, value := range keys {
		switch {
		case value != nil:
		case slices.Contains(holders, key):
			keys[key] = nothing{}
		default:
			keys[key] = "" // an empty text prints nothing, but a null would print "<no value>"
		}
	}

	var text strings.Builder
	if err := t.Execute(&text, keys); err != nil {
		return Usage("--format: %s", templateError(err)).Hint("--json, to see the keys")
	}

	if p.Stdout.TTY {
		p.Print(humanize.SafeLines(text.String()) + "\n")
		return nil
	}

	_, err = io.WriteString(p, text.String()+"\n")
	return err
}

// holders are the keys whose value is an object, a list or null.
var holders = []string{"args", "env", "metadata", "progress", "queues", "result"}

// nothing stands for a null whose key is in holders. It prints as an empty
// text, but a template can look for keys in it and use {{range}} with it, as
// with an empty object.
type nothing map[string]any

func (nothing) String() string { return "" }

// MarshalJSON implements json.Marshaler.
func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// templateError returns the text of a template's error, without name and
// position.
func templateError(err error) string {
	if e, ok := errors.AsType[template.ExecError](err); ok {
		err = e.Err
	}
	text := err.Error()
	if _, rest, ok := strings.Cut(text, ": "); ok {
		text = rest
	}
	return text
}

// templateJSON is the function json in templates: {{json .args}}.
func templateJSON(v any) (string, error) {
	var b strings.Builder
	err := WriteJSON(&b, v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// unescape converts \t, \n and \\ in a template, but not within {{ }}.
func unescape(text string) string {
	var b strings.Builder
	for text != "" {
		outside, rest, found := strings.Cut(text, "{{")
		b.WriteString(strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\\`, `\`).Replace(outside))
		if !found {
			break
		}

		action, after, closed := strings.Cut(rest, "}}")
		b.WriteString("{{" + action)
		if closed {
			b.WriteString("}}")
		}
		text = after
	}

	return b.String()
}

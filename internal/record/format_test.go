package record

import (
	"encoding/json"
	"testing"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/term/termtest"
)

func TestFormat(t *testing.T) {
	record := map[string]any{"id": json.Number("9007199254740993"), "state": "failed", "label": nil, "args": []string{"a b", "<"}}
	for _, test := range []struct{ template, want string }{
		{`{{.id}}\t{{.state}}`, "9007199254740993\tfailed\n"},
		{`{{.label}}{{if .label}}!{{end}}\\`, "\\\n"},
		{`{{json .args}}{{printf "%s\n" .state}}`, "[\"a b\",\"<\"]failed\n\n"},
	} {
		p, out, _ := termtest.Printer(0)
		f, err := NewFormatter(p, test.template)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Record(record); err != nil || p.Flush() != nil || out.String() != test.want {
			t.Errorf("%s: got %q, error %v; want %q", test.template, out, err, test.want)
		}
	}
	p, _, _ := termtest.Printer(0)
	if _, err := NewFormatter(p, "{{.id"); failure.ExitCode(err) != 2 {
		t.Error(err)
	}
	f, _ := NewFormatter(p, "{{.nosuch}}")
	if err := f.Record(record); failure.ExitCode(err) != 2 {
		t.Error(err)
	}
}

package record

import (
	"testing"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/internal/term/termtest"
)

func TestFormat(t *testing.T) {
	record := term.NewRecord("id", int64(9007199254740993), "state", "failed", "label", nil, "args", []string{"a b", "<"})
	for _, test := range []struct{ template, want string }{
		{`{{.id}}\t{{.state}}`, "9007199254740993\tfailed\n"},
		{`{{.label}}{{if .label}}!{{end}}\\`, "\\\n"},
		{`{{json .args}}{{printf "%s\n" .state}}`, "[\"a b\",\"<\"]failed\n\n"},
	} {
		p, out, _ := termtest.Printer(0)
		f, err := NewFormat(p, test.template)
		if err != nil {
			t.Fatal(err)
		}
		if err := f(record); err != nil || p.Flush() != nil || out.String() != test.want {
			t.Errorf("%s: got %q, error %v; want %q", test.template, out, err, test.want)
		}
	}
	p, _, _ := termtest.Printer(0)
	if _, err := NewFormat(p, "{{.id"); failure.ExitCode(err) != 2 {
		t.Error(err)
	}
	f, _ := NewFormat(p, "{{.nosuch}}")
	if err := f(record); failure.ExitCode(err) != 2 {
		t.Error(err)
	}
}

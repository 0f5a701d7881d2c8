package ui_test

import (
	"testing"

	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
)

func TestFormat(t *testing.T) {
	record := ui.NewRecord("id", int64(9007199254740993), "state", "failed", "label", nil, "args", []string{"a b", "<"})
	for _, test := range []struct{ template, want string }{
		{`{{.id}}\t{{.state}}`, "9007199254740993\tfailed\n"},
		{`{{.label}}{{if .label}}!{{end}}\\`, "\\\n"},
		{`{{json .args}}{{printf "%s\n" .state}}`, "[\"a b\",\"<\"]failed\n\n"},
	} {
		p, out, _ := termtest.Printer(0)
		f, err := ui.NewFormat(p, test.template)
		if err != nil {
			t.Fatal(err)
		}
		if err := f(record); err != nil || p.Flush() != nil || out.String() != test.want {
			t.Errorf("%s: got %q, error %v; want %q", test.template, out, err, test.want)
		}
	}
	p, _, _ := termtest.Printer(0)
	if _, err := ui.NewFormat(p, "{{.id"); ui.ExitCode(err) != 2 {
		t.Error(err)
	}
	f, _ := ui.NewFormat(p, "{{.nosuch}}")
	if err := f(record); ui.ExitCode(err) != 2 {
		t.Error(err)
	}
}

package ui

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

// bufferPrinter returns a printer that writes to two buffers. If columns is
// above 0, the printer treats both buffers as terminals with this many columns,
// otherwise as pipes. Call Flush before you read the buffer for stdout.
func bufferPrinter(columns int) (p *Printer, out, errs *bytes.Buffer) {
	out, errs = new(bytes.Buffer), new(bytes.Buffer)
	return New(Settings{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"RUNNER_FORCE_TTY": fmt.Sprint(columns), "NO_COLOR": "1"}[name]
	}}), out, errs
}

func TestColourIsDecidedForEachStream(t *testing.T) {
	for _, test := range []struct {
		flag, env string
		want      bool
	}{
		{"", "", false}, {"", "RUNNER_FORCE_TTY=80", true}, {"", "RUNNER_FORCE_TTY=80 NO_COLOR=1", false},
		{"", "RUNNER_FORCE_TTY=80 TERM=dumb", false},
		{"always", "NO_COLOR=1", true}, {"never", "CLICOLOR_FORCE=1", false}, {"", "CLICOLOR_FORCE=1", true},
		{"", "CLICOLOR_FORCE=0", false},
		{"", "CLICOLOR_FORCE=1 NO_COLOR=1", false}, {"auto", "RUNNER_FORCE_TTY=80", true},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		forced := 0
		fmt.Sscan(env["RUNNER_FORCE_TTY"], &forced)
		testkit.Equal(t, "colour", newStream(io.Discard, forced, test.flag, func(n string) string { return env[n] }).Colour, test.want)
	}
}

func TestNotesAreWrittenToTerminalsOnly(t *testing.T) {
	p, out, talk := bufferPrinter(0)
	p.Note("hint")
	p.Detail("detail")
	p.Fields("a\tb", `c\d`, "e\nf", "\x1b]0;x\a")
	testkit.NoError(t, p.Flush())
	testkit.Equal(t, "fields", out.String(), `a\tb`+"\t"+`c\\d`+"\t"+`e\nf`+"\t"+`\x1b]0;x\x07`+"\n")
	testkit.Equal(t, "bytes on stderr", talk.Len(), 0)
	p, _, talk = bufferPrinter(80)
	p.Note("in %s", "me\x1bdia")
	testkit.Equal(t, "stderr", talk.String(), "in me\\x1bdia\n")
}

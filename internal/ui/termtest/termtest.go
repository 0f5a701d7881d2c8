// Package termtest creates printers for tests.
package termtest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/runner/internal/ui"
)

// Printer returns a printer that writes to two buffers. If columns is above 0,
// the buffers count as terminals with this many columns. Call Flush before you
// read the buffer for stdout.
func Printer(columns int) (p *ui.Printer, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return To(columns, stdout, stderr), stdout, stderr
}

// To returns a printer that writes to two writers. If columns is above 0, they
// count as terminals with this many columns.
func To(columns int, stdout, stderr io.Writer) *ui.Printer {
	return ui.New(ui.Settings{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Now: time.Now,
		Getenv: func(name string) string {
			return map[string]string{"RUNNER_FORCE_TTY": fmt.Sprint(columns), "NO_COLOR": "1"}[name]
		}})
}

package input

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"example.com/runner/test/testkit"
)

func TestLinesKeepEveryByte(t *testing.T) {
	for _, want := range [][]string{
		{"", "", " a\r", "é"},
		{strings.Repeat("x", 64<<10), strings.Repeat("y", 200<<10), "z"},
	} {
		text := strings.Join(want, "\n")
		for _, in := range []io.Reader{strings.NewReader(text), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(text))),
			strings.NewReader(text + "\n")} {
			var got []string
			for l := range lines(in, '\n', slices.Clone) {
				testkit.NoError(t, l.err)
				got = append(got, make([]string, l.n-1-len(got))...) // blank lines are left out
				got = append(got, string(l.text))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %d lines of %d bytes, want the %d lines of %d bytes", len(got), len(strings.Join(got, "\n")), len(want),
					len(text))
			}
		}
	}
}

func TestLinesEndWithErrorOfReader(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		in   io.Reader
		line int
		want string
	}{
		{io.MultiReader(strings.NewReader("1\n2\nhalf"), iotest.ErrReader(broken)), 3, "broken"},
		{io.MultiReader(strings.NewReader("1\n"+strings.Repeat("x", longestLine+1)), strings.NewReader("\n")), 2, "is longer than 32MiB"},
	} {
		last := slices.Collect(lines(test.in, '\n', slices.Clone))
		if l := last[len(last)-1]; l.n != test.line || l.err == nil || l.err.Error() != test.want {
			t.Errorf("got line %d, error %v; want line %d, error %s", l.n, l.err, test.line, test.want)
		}
	}
}

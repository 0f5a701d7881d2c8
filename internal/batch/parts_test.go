package batch

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// scraps is a reader that returns its text in pieces of random length.
type scraps struct {
	text   string
	random *rand.Rand
}

func (s *scraps) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:s.random.IntN(min(len(p), 3*partBytes)+1)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func TestPartsAreWholeLinesHoweverTheyCome(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var text strings.Builder
		for range random.IntN(40) {
			text.WriteString(strings.Repeat("x", random.IntN(20)*random.IntN(20)*random.IntN(200)) + "\n")
		}
		if random.IntN(2) == 0 {
			text.WriteString("the last line has no end")
		}
		for _, in := range []io.Reader{&scraps{text.String(), random}, iotest.DataErrReader(strings.NewReader(text.String()))} {
			var all []byte
			for p := range parts(in) {
				if p.err != nil {
					t.Fatalf("got %+v, %v; want no error", seed, p.err)
				}
				if want := 1 + bytes.Count(all, []byte("\n")); p.line != want {
					t.Fatalf("%d: a part begins with line %d, not %d", seed, p.line, want)
				}
				if all = append(all, p.text...); len(all) < text.Len() && all[len(all)-1] != '\n' {
					t.Fatalf("%d: a part ends within a line", seed)
				}
			}
			if string(all) != text.String() {
				t.Fatalf("%d: %d bytes of %d, or others", seed, len(all), text.Len())
			}
		}
	}
}

func TestPartsEndWithWhatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		in   io.Reader
		line int
		want string
	}{
		{io.MultiReader(strings.NewReader("1\n2\nhalf"), iotest.ErrReader(broken)), 3, "broken"},
		{io.MultiReader(strings.NewReader("1\n"+strings.Repeat("x", lineLongest+1)), strings.NewReader("\n")), 2, "is longer than 32MiB"},
	} {
		last := slices.Collect(parts(test.in))
		if p := last[len(last)-1]; p.line != test.line || p.err == nil || p.err.Error() != test.want {
			t.Errorf("line %d: %v; want %d: %s", p.line, p.err, test.line, test.want)
		}
	}
}

func TestABadLineOfASlowPipeIsToldAtOnce(t *testing.T) {
	out, in := io.Pipe()
	defer in.Close()
	go func() { _, _ = io.WriteString(in, "[\"true\"]\n{\"quue\":1}\n[\"tr") }() // the writer sends no more data
	b, err := openBatch(&term.Printer{Now: time.Now}, Options{File: "-", Stdin: out, Base: jobs.Command{}.With(), NoResolve: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, err := b.check(); err == nil || !strings.Contains(err.Error(), "stdin:2") {
		t.Errorf(`got %v; want an error, Contains(Error(), "stdin:2")`, err)
	}
}

func TestBesideKeepsTheOrder(t *testing.T) {
	got := 0
	for n := range beside(func(yield func(int) bool) {
		for i := range 10_000 {
			if !yield(i) {
				return
			}
		}
	}, func(i int) int { return 2 * i }) {
		if n != 2*got {
			t.Fatalf("%d after %d", n, got)
		}
		if got++; got == 9_000 {
			break
		}
	}
}

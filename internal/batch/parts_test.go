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

	"example.com/runner/internal/testkit"
)

// randomPieces is a reader that returns its text in pieces of random length.
type randomPieces struct {
	text   string
	random *rand.Rand
}

func (s *randomPieces) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:s.random.IntN(min(len(p), 3*partBytes)+1)], s.text)
	s.text = s.text[n:]
	return n, nil
}

func TestPartsAreWholeLines(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var text strings.Builder
		for range random.IntN(40) {
			text.WriteString(strings.Repeat("x", random.IntN(20)*random.IntN(20)*random.IntN(200)) + "\n")
		}
		if random.IntN(2) == 0 {
			text.WriteString("the last line has no end")
		}
		for _, in := range []io.Reader{&randomPieces{text.String(), random}, iotest.DataErrReader(strings.NewReader(text.String()))} {
			var all []byte
			for p := range parts(in, '\n') {
				if p.err != nil {
					t.Fatalf("seed %d: got error %v, want none", seed, p.err)
				}
				if want := 1 + bytes.Count(all, []byte("\n")); p.line != want {
					t.Fatalf("seed %d: got a part that begins with line %d, want line %d", seed, p.line, want)
				}
				if all = append(all, p.text...); len(all) < text.Len() && all[len(all)-1] != '\n' {
					t.Fatalf("seed %d: got a part that ends within a line, want whole lines", seed)
				}
			}
			if string(all) != text.String() {
				t.Fatalf("seed %d: got %d bytes, want the %d bytes of the text", seed, len(all), text.Len())
			}
		}
	}
}

func TestPartsEndWithTheErrorOfTheReader(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		in   io.Reader
		line int
		want string
	}{
		{io.MultiReader(strings.NewReader("1\n2\nhalf"), iotest.ErrReader(broken)), 3, "broken"},
		{io.MultiReader(strings.NewReader("1\n"+strings.Repeat("x", lineLongest+1)), strings.NewReader("\n")), 2, "is longer than 32MiB"},
	} {
		last := slices.Collect(parts(test.in, '\n'))
		if p := last[len(last)-1]; p.line != test.line || p.err == nil || p.err.Error() != test.want {
			t.Errorf("got line %d, error %v; want line %d, error %s", p.line, p.err, test.line, test.want)
		}
	}
}

func TestMapAheadKeepsTheOrder(t *testing.T) {
	got := 0
	for n := range mapAhead(func(yield func(int) bool) {
		for i := range 10_000 {
			if !yield(i) {
				return
			}
		}
	}, func(i int) int { return 2 * i }) {
		testkit.Equal(t, "value", n, 2*got)
		if got++; got == 9_000 {
			break
		}
	}
}

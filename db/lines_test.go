package db

import (
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	chunk := func(data string) Chunk { return Chunk{Data: []byte(data)} }
	var many strings.Builder
	for range 200 {
		many.WriteString("line\n")
	}
	for _, test := range []struct {
		chunks []Chunk
		n      int
		want   string
	}{
		{nil, 3, ""}, {[]Chunk{chunk("")}, 3, ""}, {[]Chunk{chunk("\n")}, 1, "\n"}, {[]Chunk{chunk("a")}, 1, "a"},
		{[]Chunk{chunk("a\nb\nc\n")}, 2, "b\nc\n"}, {[]Chunk{chunk("a\nb"), chunk("c\nd")}, 2, "bc\nd"},
		{[]Chunk{chunk("a\n\n\n")}, 2, "\n\n"}, {[]Chunk{chunk(many.String())}, 50, strings.Repeat("line\n", 50)},
		{[]Chunk{chunk("a\nb\n")}, 9, "a\nb\n"},
	} {
		last, _ := LastLines(test.chunks, test.n)
		var got string
		for _, c := range last {
			got += string(c.Data)
		}
		if got != test.want {
			t.Errorf("last %d lines of %v: %q, want %q", test.n, test.chunks, got, test.want)
		}
	}
}

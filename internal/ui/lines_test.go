package ui

import (
	"slices"
	"testing"

	"example.com/runner/db"
)

func TestShownLines(t *testing.T) {
	chunk := func(stream db.Stream, text string) db.Chunk { return db.Chunk{Stream: stream, Data: []byte(text)} }
	for _, test := range []struct {
		chunks []db.Chunk
		want   []string
	}{
		{nil, nil},
		{[]db.Chunk{chunk("stdout", "\n\n")}, nil},
		{[]db.Chunk{chunk("stdout", "1\n2\n3\n4\n")}, []string{"2", "3", "4"}},
		{[]db.Chunk{chunk("stdout", "one, "), chunk("stdout", "two"), chunk("stderr", "three\n")}, []string{"one, two", "three"}},
		{[]db.Chunk{chunk("stdout", " 10 %\r 50 %\r100 %\r\ndone\r\n\tat x")}, []string{"100 %", "done", "    at x"}},
		{[]db.Chunk{chunk("stdout", "a\n\nb")}, []string{"a", "", "b"}},
	} {
		if got := shownLines(test.chunks, 3); !slices.Equal(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

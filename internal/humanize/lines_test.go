package humanize

import (
	"slices"
	"strings"
	"testing"

	"example.com/runner/jobs"
)

func TestLastLines(t *testing.T) {
	chunk := func(data string) jobs.Chunk { return jobs.Chunk{Data: []byte(data)} }
	var many strings.Builder
	for range 200 {
		many.WriteString("line\n")
	}
	for _, test := range []struct {
		chunks []jobs.Chunk
		n      int
		want   string
	}{
		{nil, 3, ""}, {[]jobs.Chunk{chunk("")}, 3, ""}, {[]jobs.Chunk{chunk("\n")}, 1, "\n"}, {[]jobs.Chunk{chunk("a")}, 1, "a"},
		{[]jobs.Chunk{chunk("a\nb\nc\n")}, 2, "b\nc\n"}, {[]jobs.Chunk{chunk("a\nb"), chunk("c\nd")}, 2, "bc\nd"},
		{[]jobs.Chunk{chunk("a\n\n\n")}, 2, "\n\n"}, {[]jobs.Chunk{chunk(many.String())}, 50, strings.Repeat("line\n", 50)},
		{[]jobs.Chunk{chunk("a\nb\n")}, 9, "a\nb\n"},
	} {
		last, _ := Last(test.chunks, test.n)
		var got string
		for _, c := range last {
			got += string(c.Data)
		}
		if got != test.want {
			t.Errorf("last %d lines of %v: %q, want %q", test.n, test.chunks, got, test.want)
		}
	}
}

func TestShownLines(t *testing.T) {
	chunk := func(stream, text string) jobs.Chunk { return jobs.Chunk{Stream: stream, Data: []byte(text)} }
	for _, test := range []struct {
		chunks []jobs.Chunk
		want   []string
	}{
		{nil, nil},
		{[]jobs.Chunk{chunk("stdout", "\n\n")}, nil},
		{[]jobs.Chunk{chunk("stdout", "1\n2\n3\n4\n")}, []string{"2", "3", "4"}},
		{[]jobs.Chunk{chunk("stdout", "one, "), chunk("stdout", "two"), chunk("stderr", "three\n")}, []string{"one, two", "three"}},
		{[]jobs.Chunk{chunk("stdout", " 10 %\r 50 %\r100 %\r\ndone\r\n\tat x")}, []string{"100 %", "done", "    at x"}},
		{[]jobs.Chunk{chunk("stdout", "a\n\nb")}, []string{"a", "", "b"}},
	} {
		if got := Shown(test.chunks, 3); !slices.Equal(got, test.want) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

package humanize

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// Line is a line of output.
type Line struct {
	At   time.Time // time of the first piece of the line
	Text []byte    // text of the line with its newline; an incomplete line has none
}

// Ended returns the line's text, with a newline.
func (l Line) Ended() []byte {
	if l.Text[len(l.Text)-1] == '\n' {
		return l.Text
	}
	return append(l.Text, '\n')
}

// Splitter joins pieces of output into lines, separately for each source, such
// as one stream of one task. Its zero value is ready for use.
type Splitter[Source comparable] struct {
	Max     int // a line without a newline counts as complete at this number of bytes; default 64 KiB
	partial map[Source]*Line
}

// Add adds a piece of output, which it copies, and returns the lines that are
// now complete.
func (s *Splitter[Source]) Add(source Source, at time.Time, data []byte) (complete []Line) {
	if s.partial == nil {
		s.partial = map[Source]*Line{}
	}

	for part := range bytes.Lines(data) {
		line := s.partial[source]
		if line == nil {
			line = &Line{At: at}
			s.partial[source] = line
		}
		line.Text = append(line.Text, part...)
		if part[len(part)-1] == '\n' || len(line.Text) >= cmp.Or(s.Max, 64<<10) {
			complete = append(complete, *line)
			delete(s.partial, source)
		}
	}

	return complete
}

// Partial returns a source's incomplete line, or nil.
func (s *Splitter[Source]) Partial(source Source) *Line { return s.partial[source] }

// End removes and returns a source's incomplete line, or nil.
func (s *Splitter[Source]) End(source Source) *Line {
	line := s.partial[source]
	delete(s.partial, source)
	return line
}

// Partials lists the sources that have an incomplete line.
func (s *Splitter[Source]) Partials() (list []Source) {
	for source := range s.partial {
		list = append(list, source)
	}
	return list
}

// Last returns the last n lines in a list of pieces. enough is false if the
// first of these lines may begin in an earlier piece, or if there are fewer
// than n.
func Last(chunks []jobs.Chunk, n int) (last []jobs.Chunk, enough bool) {
	if n == 0 {
		return nil, true
	}

	found := 0
	for i, c := range slices.Backward(chunks) {
		end := len(c.Data)
		if i == len(chunks)-1 {
			end-- // skip a final newline, because no further line begins after it
		}

		for end >= 0 {
			at := bytes.LastIndexByte(c.Data[:end], '\n')
			if at < 0 {
				break
			}
			if found++; found == n {
				last = slices.Clone(chunks[i:])
				if last[0].Data, last[0].DroppedBytes = c.Data[at+1:], 0; len(last[0].Data) == 0 {
					last = last[1:]
				}
				return last, true
			}

			end = at
		}
	}

	return chunks, false
}

// Shown returns the last n lines in a list of pieces as a terminal would show
// them: of a line that was overwritten, the final text. Blank lines at the end
// are left out, and control characters stay.
func Shown(chunks []jobs.Chunk, n int) (list []string) {
	var text []byte
	for i, c := range chunks {
		if i > 0 && c.Stream != chunks[i-1].Stream && len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n') // end the line here, because the next piece belongs to another stream
		}
		text = append(text, c.Data...)
	}

	for text = bytes.TrimRight(text, "\r\n\t "); len(text) > 0 && len(list) < n; {
		at := bytes.LastIndexByte(text, '\n')
		line := bytes.TrimRight(text[at+1:], "\r")
		text = text[:max(at, 0)]
		line = line[bytes.LastIndexByte(line, '\r')+1:]
		list = append(list, strings.ReplaceAll(string(line), "\t", "    "))
	}

	slices.Reverse(list)
	return list
}

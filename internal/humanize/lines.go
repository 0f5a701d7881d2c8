package humanize

import (
	"bytes"
	"cmp"
	"time"
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

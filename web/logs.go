package web

import (
	"context"
	"html/template"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

const (
	maxLines  = 1000
	maxChunks = 64 // chunks in one read, each of at most 32 KiB
	maxLine   = 16 << 10
)

// logView is the output of an attempt.
type logView struct {
	Attempt int // number of the attempt, from 1
	Lines   []logLine
	Cut     bool   // whether the output has more lines before these
	Gap     string // size of the output that was not kept
	Link    string // URL of the whole output as a file
	Follow  string // URL of the output that follows; empty if the attempt has ended
	End     string // how the attempt ended; empty while it runs
}

type logLine struct {
	At     time.Time
	Stderr bool
	Text   template.HTML
}

// lastLines returns the last lines of the output of an attempt.
func (h *handler) lastLines(ctx context.Context, v *taskView, a jobs.Attempt, n int) (*logView, error) {
	l := &logView{Attempt: n, Link: v.Link + "/log?attempt=" + strconv.Itoa(n)}
	chunks, err := admin.LastOutput(ctx, h.r, a, maxChunks)
	if err != nil {
		return nil, err
	}
	lines := newLineSplitter()
	for i, c := range chunks {
		if c.DroppedBytes > 0 {
			l.Gap = humanize.Size(c.DroppedBytes)
		}
		if i == 0 {
			l.Cut = c.Seq > 1
		}
		l.Lines = append(l.Lines, lines.add(c)...)
	}
	l.Lines = append(l.Lines, lines.end()...)
	if len(l.Lines) > maxLines {
		l.Lines, l.Cut = l.Lines[len(l.Lines)-maxLines:], true
	}
	if a.State == jobs.Running {
		l.Follow = l.Link + "&follow=1"
		return l, nil
	}
	for _, view := range v.Attempts {
		if view.N == n {
			l.End = view.Result + " after " + humanize.Took(a.Duration)
			if a.Worker != "" {
				l.End += " on " + humanize.Safe(a.Worker)
			}
		}
	}
	return l, nil
}

// lineSplitter splits chunks of output into lines, for each stream separately.
type lineSplitter struct{ partial map[string]*partialLine }

type partialLine struct {
	at        time.Time
	text      strings.Builder
	textStyle textStyle
}

func newLineSplitter() *lineSplitter { return &lineSplitter{map[string]*partialLine{}} }

// add returns the lines that end in a chunk.
func (s *lineSplitter) add(c jobs.Chunk) (list []logLine) {
	b := s.partial[c.Stream]
	if b == nil {
		b = &partialLine{}
		s.partial[c.Stream] = b
	}
	for part := range strings.Lines(string(c.Data)) {
		if b.text.Len() == 0 {
			b.at = c.At
		}
		b.text.WriteString(strings.TrimSuffix(part, "\n"))
		if strings.HasSuffix(part, "\n") || b.text.Len() >= maxLine {
			list = append(list, b.line(c.Stream))
		}
	}
	return list
}

// end returns the lines that have no newline, and removes them.
func (s *lineSplitter) end() (list []logLine) {
	list = s.unfinished()
	clear(s.partial)
	return list
}

// unfinished returns the lines that have no newline yet, and keeps them.
func (s *lineSplitter) unfinished() (list []logLine) {
	for _, stream := range []string{"stdout", "stderr"} {
		if b := s.partial[stream]; b != nil && b.text.Len() > 0 {
			textStyle := b.textStyle
			list = append(list, logLine{At: b.at, Stderr: stream == "stderr", Text: textStyle.html(b.text.String())})
		}
	}
	return list
}

func (b *partialLine) line(stream string) logLine {
	l := logLine{At: b.at, Stderr: stream == "stderr", Text: b.textStyle.html(b.text.String())}
	b.text.Reset()
	return l
}

package web

import (
	"context"
	"html/template"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/lines"
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
	Gap     string // size of the part of the output that the worker did not store
	Link    string // URL of the whole output as a file
	Follow  string // URL of the stream with later output; empty if the attempt has ended
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
	split := newLineSplitter()
	for i, c := range chunks {
		if c.DroppedBytes > 0 {
			l.Gap = humanize.Size(c.DroppedBytes)
		}
		if i == 0 {
			l.Cut = c.Seq > 1
		}
		l.Lines = append(l.Lines, split.add(c)...)
	}
	l.Lines = append(l.Lines, split.unfinished()...)
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

// lineSplitter splits chunks of output into lines of HTML, for each stream separately.
type lineSplitter struct {
	lines  lines.Splitter[string]
	styles map[string]*textStyle // style at the end of the last line of each stream
}

func newLineSplitter() *lineSplitter {
	return &lineSplitter{lines.Splitter[string]{Max: maxLine}, map[string]*textStyle{"stdout": {}, "stderr": {}}}
}

// add returns the lines that end in a chunk.
func (s *lineSplitter) add(c jobs.Chunk) (list []logLine) {
	for _, l := range s.lines.Add(c.Stream, c.At, c.Data) {
		list = append(list, newLogLine(c.Stream, l, s.styles[c.Stream]))
	}
	return list
}

// unfinished returns the lines that have no newline yet.
func (s *lineSplitter) unfinished() (list []logLine) {
	for _, stream := range []string{"stdout", "stderr"} {
		if l := s.lines.Partial(stream); l != nil {
			style := *s.styles[stream]
			list = append(list, newLogLine(stream, *l, &style))
		}
	}
	return list
}

// newLogLine converts a line to HTML. The parameter style is the text style at the beginning of the line. newLogLine
// changes it to the style at the end of the line.
func newLogLine(stream string, l lines.Line, style *textStyle) logLine {
	return logLine{At: l.At, Stderr: stream == "stderr", Text: style.html(strings.TrimSuffix(string(l.Text), "\n"))}
}

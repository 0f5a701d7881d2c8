package web

import (
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/lines"
	"example.com/runner/jobs"
)

// The limits of the output on the page of a task.
const (
	maxLines    = 1000
	maxLogSize  = 512 << 10 // number of bytes that the page reads from the end of an output
	maxSearched = 8 << 20   // number of bytes that a search reads from the end of an output
	maxChunks   = 64        // number of chunks in one read; a chunk has at most 32 KiB
	tailLines   = 12        // number of last lines of a failed attempt that the page shows above the attempts
)

// logView is the output of an attempt.
type logView struct {
	logFilter
	Attempt  int // number of the attempt, from 1
	Lines    template.HTML
	Count    string        // number of shown lines
	Cut      bool          // whether the output has more lines before the shown lines
	Searched string        // size of the part that was searched; empty if the whole output was searched
	Tail     template.HTML // last lines of a failed attempt
	TailOf   string        // stream of the lines in Tail: stdout or stderr
	Whole    bool          // whether Tail is the whole output, so that the page needs to show no other lines
	Link     string        // URL of the whole output as a file
	Follow   string        // URL of the stream with later output; empty if the attempt has ended
	End      string        // how the attempt ended; empty while the attempt runs
}

// logFilter selects lines of an output.
type logFilter struct {
	Find   string // text that the lines contain, in upper or lower case; empty for all lines
	Stream string // stdout, stderr, or empty for both
}

// newLogFilter returns the filter in the URL of a page.
func newLogFilter(form url.Values) logFilter {
	f := logFilter{Find: humanize.Safe(truncate(form.Get("find"), 200)), Stream: form.Get("stream")}
	if f.Stream != "stdout" && f.Stream != "stderr" {
		f.Stream = ""
	}
	return f
}

// query returns the filter as a part of the query of a URL, or an empty text for a filter that selects all lines.
func (f logFilter) query() string {
	text := ""
	if f.Find != "" {
		text += "&find=" + escaped(f.Find)
	}
	if f.Stream != "" {
		text += "&stream=" + f.Stream
	}
	return text
}

func (f logFilter) match(l logLine) bool {
	return (f.Stream == "" || f.Stream == l.stream) &&
		(f.Find == "" || strings.Contains(strings.ToLower(lines.StripEscapes(l.raw)), strings.ToLower(f.Find)))
}

// lastLines returns the last lines of the output of an attempt.
//
// The last lines of a failed attempt are also at the top of the page, unless
// the failure is history: the task was retried and waits, runs or has ended
// otherwise. A user who chooses the attempt sees them again.
func (h *handler) lastLines(ctx context.Context, v *taskView, a jobs.Attempt, n int, form url.Values) (*logView, error) {
	filter := newLogFilter(form)
	l := &logView{logFilter: filter, Attempt: n, Link: v.Link + "/log?attempt=" + strconv.Itoa(n)}
	most, size := maxLines, maxLogSize
	if filter != (logFilter{}) {
		most, size = maxSearched, maxSearched // a search reads all lines in the last maxSearched bytes
	}
	chunks, whole, err := h.readTail(ctx, a, most, size)
	if err != nil {
		return nil, err
	}
	if l.Cut = !whole; l.Cut && size == maxSearched {
		l.Searched = humanize.Size(maxSearched)
	}
	split := newLineSplitter(cursor{})
	var all []logLine
	for _, c := range chunks {
		all = append(all, split.add(c)...)
	}
	all = append(all, split.unfinished()...)
	list := slices.DeleteFunc(slices.Clone(all), func(line logLine) bool { return !filter.match(line) })
	if len(list) > maxLines {
		list, l.Cut = list[len(list)-maxLines:], true
	}
	zone := v.page.Now.Location()
	l.Lines, l.Count = htmlOf(list, zone), humanize.Plural(len(list), "line")
	if a.State == jobs.Running {
		l.Follow = fmt.Sprintf("%s&follow=1%s&from=%s", l.Link, filter.query(), split.from)
		return l, nil
	}
	if a.State == jobs.Failed && (v.Task.State == jobs.Failed || v.Task.State == jobs.Retrying || form.Get("attempt") != "") {
		for _, l.TailOf = range []string{"stderr", "stdout"} {
			shown := lastShown(all, l.TailOf)
			if l.Tail = htmlOf(shown, zone); l.Tail != "" {
				l.Whole = filter == logFilter{} && !l.Cut && len(withoutBlankEnd(list)) == len(shown)
				break
			}
		}
	}
	l.End = v.Attempts[n-1].Result + " after " + humanize.Took(a.Duration)
	if a.Worker != "" {
		l.End += " on " + humanize.Safe(a.Worker)
	}
	return l, nil
}

// readTail returns the last chunks of the output of an attempt, oldest first. It reads until the chunks have the given number of lines or
// bytes. The result "whole" reports whether these chunks are the whole output.
func (h *handler) readTail(ctx context.Context, a jobs.Attempt, most, size int) (chunks []jobs.Chunk, whole bool, err error) {
	var parts [][]jobs.Chunk // the newest part comes first
	before, found, bytes := int64(maxSeq), 0, 0
	for limit := maxChunks; ; limit = min(2*limit, 64*maxChunks) {
		part, err := admin.OutputBefore(ctx, h.r, a, before, limit)
		if err != nil {
			return nil, false, err
		}
		parts = append(parts, part)
		for _, c := range part {
			bytes += len(c.Data)
			found += strings.Count(string(c.Data), "\n")
		}
		if whole = len(part) < limit; whole || found > most || bytes >= size {
			slices.Reverse(parts)
			return slices.Concat(parts...), whole, nil
		}
		before = part[0].Seq
	}
}

// lastShown returns the last lines of a stream, without blank lines at the end.
func lastShown(list []logLine, stream string) []logLine {
	list = slices.DeleteFunc(slices.Clone(list), func(l logLine) bool { return l.stream != stream })
	list = withoutBlankEnd(list)
	return list[max(len(list)-tailLines, 0):]
}

func withoutBlankEnd(list []logLine) []logLine {
	for len(list) > 0 && strings.TrimSpace(lines.StripEscapes(list[len(list)-1].raw)) == "" {
		list = list[:len(list)-1]
	}
	return list
}

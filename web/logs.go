package web

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// The limits of the output on the page of a task.
const (
	maxLines   = 1000
	maxLogSize = 512 << 10 // number of bytes that the page reads from the end of an output
	maxChunks  = 64        // number of chunks in one read; a chunk has at most 32 KiB
	tailLines  = 12        // number of last lines of a failed attempt that the page shows above the attempts
)

// logView is the output of an attempt.
type logView struct {
	Attempt int // number of the attempt, from 1
	Lines   template.HTML
	Count   string        // number of shown lines
	Cut     bool          // whether the output has more lines before the shown lines
	Tail    template.HTML // last lines of a failed attempt
	TailOf  string        // stream of the lines in Tail: stdout or stderr
	Whole   bool          // whether Tail is the whole output, so that the page needs to show no other lines
	Link    string        // URL of the whole output as a file
	Follow  string        // URL of the stream with later output; empty if the attempt has ended
	End     string        // how the attempt ended; empty while the attempt runs
}

// lastLines returns the last lines of the output of an attempt.
//
// The last lines of a failed attempt are also at the top of the page, unless
// the failure is history: the task was retried and waits, runs or has ended
// otherwise. A user who chooses the attempt sees them again.
func (h *handler) lastLines(ctx context.Context, v *taskView, a jobs.Attempt, n int, isChosen bool) (*logView, error) {
	l := &logView{Attempt: n, Link: v.Link + "/log?attempt=" + strconv.Itoa(n)}
	chunks, whole, err := h.readTail(ctx, a)
	if err != nil {
		return nil, err
	}
	split := newLineSplitter(cursor{})
	var all []logLine
	for _, c := range chunks {
		all = append(all, split.add(c)...)
	}
	all = append(all, split.unfinished()...)
	list := all[max(len(all)-maxLines, 0):]
	l.Cut = !whole || len(list) < len(all)
	zone := v.page.Now.Location()
	l.Lines, l.Count = htmlOf(list, zone), humanize.Plural(len(list), "line")
	if a.State == jobs.Running {
		l.Follow = fmt.Sprintf("%s&follow=1&from=%s", l.Link, split.from)
		return l, nil
	}
	if a.State == jobs.Failed && (v.Task.State == jobs.Failed || v.Task.State == jobs.Retrying || isChosen) {
		for _, l.TailOf = range []string{"stderr", "stdout"} {
			shown := lastShown(all, l.TailOf)
			if l.Tail = htmlOf(shown, zone); l.Tail != "" {
				l.Whole = !l.Cut && len(withoutBlankEnd(list)) == len(shown)
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

// readTail returns the last chunks of the output of an attempt, oldest first. It
// reads until the chunks have more than maxLines lines or maxLogSize bytes. whole
// reports whether these chunks are the whole output.
func (h *handler) readTail(ctx context.Context, a jobs.Attempt) (chunks []jobs.Chunk, whole bool, err error) {
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
		if whole = len(part) < limit; whole || found > maxLines || bytes >= maxLogSize {
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
	for len(list) > 0 && strings.TrimSpace(humanize.StripEscapes(list[len(list)-1].raw)) == "" {
		list = list[:len(list)-1]
	}
	return list
}

package web

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// The limits of the output on the page of a task.
const (
	maxLine    = 16 << 10 // size at which a line without a newline counts as complete
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
func (h *handler) lastLines(ctx context.Context, v *taskView, a admin.Attempt, n int, isChosen bool) (*logView, error) {
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
		for i, name := range slices.Backward(streams[:]) {
			shown := lastShown(all, i)
			l.TailOf = string(name)
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

// readTail returns the last chunks of the output of an attempt, oldest first.
// It reads until the chunks have more than maxLines lines or maxLogSize bytes.
// whole reports whether these chunks are the whole output.
func (h *handler) readTail(ctx context.Context, a admin.Attempt) (chunks []admin.Chunk, whole bool, err error) {
	var parts [][]admin.Chunk // the newest part comes first
	before, found, bytes := int64(math.MaxInt64), 0, 0
	for limit := maxChunks; ; limit = min(2*limit, 64*maxChunks) {
		part, err := ui.OutputBefore(ctx, h.r, a, before, limit)
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
func lastShown(list []logLine, stream int) []logLine {
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

// logLine is a line of output as HTML.
type logLine struct {
	at      time.Time
	stream  int    // index in streams
	raw     string // the line as the task printed it, without its newline
	text    template.HTML
	partial bool  // whether the line has no newline yet
	dropped int64 // number of missing bytes, if this line stands for output that was not kept; otherwise 0
}

// html writes the line as an element of a page, with its time in the zone of
// the page.
func (l logLine) html(b *strings.Builder, zone *time.Location) {
	if l.dropped > 0 {
		fmt.Fprintf(b, "<span class=\"l dim\">--- %s not kept ---\n</span>", humanize.Size(l.dropped))
		return
	}

	b.WriteString(`<span class="l`)
	if l.partial {
		b.WriteString(" part")
	}
	if l.stream == stderr {
		b.WriteString(" e")
	}

	b.WriteString(`"><i>` + l.at.In(zone).Format(time.TimeOnly) + ` </i>` + string(l.text) + "\n</span>")
}

// htmlOf returns the lines as HTML, with times in a zone.
func htmlOf(list []logLine, zone *time.Location) template.HTML {
	var b strings.Builder
	for _, l := range list {
		l.html(&b, zone)
	}
	return template.HTML(b.String())
}

var streams = [2]admin.Stream{admin.Stdout, admin.Stderr}

const stderr = 1 // index in streams

// cursor says where the complete lines of each stream end. A page that has lost
// its connection sends it to get the lines after it.
type cursor [2]streamOffset

// streamOffset is a position in a stream: the number of a chunk, and an offset
// in this chunk.
type streamOffset struct {
	seq  int64
	skip int
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", c[0].seq, c[0].skip, c[1].seq, c[1].skip)
}

// parseCursor parses what String writes, and reports whether text is a cursor.
func parseCursor(text string) (c cursor, ok bool) {
	_, err := fmt.Sscanf(text, "%d.%d.%d.%d", &c[0].seq, &c[0].skip, &c[1].seq, &c[1].skip)
	if err != nil || c.String() != text || strings.Contains(text, "-") {
		return cursor{}, false
	}
	return c, true
}

// lastSent returns the number of the last chunk of which a client with this
// cursor has the whole text.
func (c cursor) lastSent() int64 { return max(min(c[0].seq, c[1].seq)-1, 0) }

// lineSplitter splits chunks of output into lines of HTML, for each stream
// separately.
type lineSplitter struct {
	lines   humanize.Splitter[int]
	styles  [2]textStyle // at the end of the last line of each stream
	from    cursor       // position after the last complete line of each stream
	started bool
}

// newLineSplitter returns a splitter of the output after a cursor.
func newLineSplitter(from cursor) *lineSplitter {
	return &lineSplitter{lines: humanize.Splitter[int]{Max: maxLine}, from: from, started: from != cursor{}}
}

// add returns the lines that end in a chunk. It ignores the part of the chunk
// before the cursor.
func (s *lineSplitter) add(c admin.Chunk) (list []logLine) {
	data, stream := c.Data, slices.Index(streams[:], c.Stream)
	switch from := s.from[stream]; {
	case c.Seq < from.seq:
		return nil
	case c.Seq == from.seq:
		data = data[min(from.skip, len(data)):]
	case c.DroppedBytes > 0 && s.started:
		list = append(list, logLine{dropped: c.DroppedBytes})
	}

	s.started = true
	for _, l := range s.lines.Add(stream, c.At, data) {
		list = append(list, newLogLine(stream, l, &s.styles[stream]))
	}

	for i := range streams {
		switch p := s.lines.Partial(i); {
		case p == nil && c.Seq < s.from[i].seq: // do nothing: the client already has later lines of this stream
		case p == nil:
			s.from[i] = streamOffset{c.Seq + 1, 0}
		case i == stream && len(p.Text) <= len(data):
			s.from[i] = streamOffset{c.Seq, len(c.Data) - len(p.Text)}
		}
	}

	return list
}

// unfinished returns the lines that have no newline yet.
func (s *lineSplitter) unfinished() (list []logLine) {
	for i, style := range s.styles {
		if p := s.lines.Partial(i); p != nil {
			l := newLogLine(i, *p, &style) // a copy, because the line comes again
			l.partial = true
			list = append(list, l)
		}
	}
	return list
}

// newLogLine converts a line to HTML. It changes style to that at the end of
// the line.
func newLogLine(stream int, l humanize.Line, style *textStyle) logLine {
	raw := strings.TrimSuffix(string(l.Text), "\n")
	return logLine{at: l.At, stream: stream, raw: raw, text: style.html(raw)}
}

// The output of a task is text for a terminal. The pages show the sixteen
// colours of a terminal and remove every other escape sequence.

// textStyle is the current style of a terminal.
type textStyle struct {
	fg, bg int     // 0 is the default colour, 1 to 8 are the normal colours, and 9 to 16 are the bright ones
	on     [5]bool // bold, dim, italic and underlined, by the parameter that turns each on
}

var styleClasses = [5]string{1: "bo", 2: "di", 3: "it", 4: "un"}

// class returns the CSS classes of this style, or "" for the default style.
func (k textStyle) class() string {
	var list []string
	if k.fg > 0 {
		list = append(list, "f"+strconv.Itoa(k.fg-1))
	}
	if k.bg > 0 {
		list = append(list, "b"+strconv.Itoa(k.bg-1))
	}

	for i, on := range k.on {
		if on {
			list = append(list, styleClasses[i])
		}
	}

	return strings.Join(list, " ")
}

// extendedColour returns the colour that the parameters after 38 or 48 choose,
// counted as in textStyle, and how many of them it used. Only the sixteen
// colours of a terminal have classes; all others are the default colour.
func extendedColour(list []string) (used, colour int) {
	if len(list) > 0 && list[0] == "2" {
		return 4, 0
	}
	if len(list) > 1 {
		if n, err := strconv.Atoi(list[1]); err == nil && 0 <= n && n < 16 {
			colour = n + 1
		}
	}
	return 2, colour
}

// set applies the parameters of an SGR sequence ("select graphic rendition").
func (k *textStyle) set(parameters string) {
	list := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		*k = textStyle{}
		return
	}

	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i])
		tens, digit, colour := n/10, n%10, &k.fg
		if tens == 4 || tens == 10 {
			colour = &k.bg
		}

		switch {
		case n <= 0:
			*k = textStyle{}
		case n <= 4:
			k.on[n] = true
		case n == 22:
			k.on[1], k.on[2] = false, false
		case n == 23 || n == 24:
			k.on[digit] = false
		case (tens == 3 || tens == 4) && digit == 8:
			used := 0
			used, *colour = extendedColour(list[i+1:])
			i += used
		case (tens == 3 || tens == 4) && digit == 9:
			*colour = 0
		case tens == 3 || tens == 4:
			*colour = digit + 1
		case (tens == 9 || tens == 10) && digit <= 7:
			*colour = digit + 9
		}
	}
}

// html returns a line without its newline as HTML, and leaves the style as it
// is at the end of the line, for the next one.
func (k *textStyle) html(line string) template.HTML {
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:] // a terminal overwrites the text before a carriage return
	var b strings.Builder
	write := func(text string) {
		if text == "" {
			return
		}

		text = template.HTMLEscapeString(humanize.SafeLines(text))
		if class := k.class(); class != "" {
			b.WriteString(`<span class="` + class + `">` + text + `</span>`)
			return
		}

		b.WriteString(text)
	}
	for {
		at := strings.IndexByte(line, 0x1b)
		if at < 0 {
			write(line)
			return template.HTML(b.String())
		}

		write(line[:at])
		sgr, colours, rest := humanize.CutEscape(line[at:])
		if colours {
			k.set(sgr)
		}
		line = rest
	}
}

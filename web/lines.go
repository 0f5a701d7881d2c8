package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

const (
	maxLine = 16 << 10 // size at which a line without a newline counts as complete
	maxSeq  = math.MaxInt64
)

// logLine is a line of output as HTML.
type logLine struct {
	at      time.Time
	stream  string
	raw     string // the line as the task printed it, without its newline
	text    template.HTML
	partial bool  // whether the line has no newline yet
	dropped int64 // number of missing bytes, if this line stands for output that was not kept; otherwise 0
}

// html writes the line as an element of a page, with its time in the zone of the page.
func (l logLine) html(b *strings.Builder, zone *time.Location) {
	if l.dropped > 0 {
		fmt.Fprintf(b, "<span class=\"l dim\">--- %s not kept ---\n</span>", humanize.Size(l.dropped))
		return
	}
	b.WriteString(`<span class="l`)
	if l.partial {
		b.WriteString(" part")
	}
	if l.stream == "stderr" {
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

var streams = [2]string{"stdout", "stderr"}

// cursor says where the complete lines of each stream end. Its first element is for stdout, and its second element is for stderr. A page
// that has lost its connection sends the cursor to get the lines after it.
type cursor [2]streamOffset

// streamOffset is a position in a stream: the number of a chunk, and an offset in this chunk.
type streamOffset struct {
	seq  int64
	skip int
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", c[0].seq, c[0].skip, c[1].seq, c[1].skip)
}

// parseCursor returns the cursor in a text that String has written. It reports whether the text contains a cursor.
func parseCursor(text string) (c cursor, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return c, false
	}
	var n [4]int64
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil || n[i] < 0 || n[i] > math.MaxInt32 {
			return c, false
		}
	}
	return cursor{{n[0], int(n[1])}, {n[2], int(n[3])}}, true
}

// lastSent returns the number of a chunk. A client with this cursor has already received the text of this chunk and of all earlier chunks.
func (c cursor) lastSent() int64 { return max(min(c[0].seq, c[1].seq)-1, 0) }

// lineSplitter splits chunks of output into lines of HTML, for each stream separately.
type lineSplitter struct {
	lines   humanize.Splitter[string]
	styles  map[string]*textStyle // style at the end of the last line of each stream
	from    cursor                // position after the last complete line of each stream
	started bool
}

// newLineSplitter returns a splitter of the output after a cursor.
func newLineSplitter(from cursor) *lineSplitter {
	return &lineSplitter{lines: humanize.Splitter[string]{Max: maxLine}, from: from, started: from != cursor{},
		styles: map[string]*textStyle{"stdout": {}, "stderr": {}}}
}

// add returns the lines that end in a chunk. It ignores the part of the chunk before the cursor.
func (s *lineSplitter) add(c jobs.Chunk) (list []logLine) {
	data, stream := c.Data, 0
	if c.Stream == streams[1] {
		stream = 1
	}
	from := s.from[stream]
	if c.Seq < from.seq {
		return nil
	}
	if c.Seq == from.seq {
		data = data[min(from.skip, len(data)):]
	} else if c.DroppedBytes > 0 && s.started {
		list = append(list, logLine{at: c.At, stream: c.Stream, dropped: c.DroppedBytes})
	}
	s.started = true
	for _, l := range s.lines.Add(c.Stream, c.At, data) {
		list = append(list, newLogLine(c.Stream, l, s.styles[c.Stream]))
	}
	for i, name := range streams {
		switch p := s.lines.Partial(name); {
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
	for _, stream := range streams {
		if p := s.lines.Partial(stream); p != nil {
			style := *s.styles[stream]
			l := newLogLine(stream, *p, &style)
			l.partial = true
			list = append(list, l)
		}
	}
	return list
}

// newLogLine converts a line to HTML. The parameter "style" is the text style at the beginning of the line. newLogLine changes this style
// to the style at the end of the line.
func newLogLine(stream string, l humanize.Line, style *textStyle) logLine {
	raw := strings.TrimSuffix(string(l.Text), "\n")
	return logLine{at: l.At, stream: stream, raw: raw, text: style.html(raw)}
}

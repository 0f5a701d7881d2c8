package ops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
)

// Style is the format of log records.
type Style int

const (
	Plain    Style = iota // a time in the format of RFC 3339, the level, the message, key=value
	Terminal              // like Plain, but with the time of day only; for people
	Journal               // <priority>message key=value; no time, because the journal adds it
	JSON                  // one JSON object per line
)

// StyleFor returns the style for the value of --log-format. If the value is
// auto, the style depends on where the log goes.
func StyleFor(format string, to ui.Stream) Style {
	switch {
	case format == "json":
		return JSON
	case format == "text":
		return Plain
	case to.TTY:
		return Terminal
	}

	if toJournal, _ := journal.StderrIsJournalStream(); toJournal && to.Writer == os.Stderr {
		return Journal
	}

	return Plain
}

// NewLog returns a logger for a worker's log. Each record is one line, even if
// a name or output contains newlines.
func NewLog(to ui.Stream, style Style, level slog.Level) *slog.Logger {
	if style == JSON {
		options := &slog.HandlerOptions{Level: level, ReplaceAttr: jsonLogValue}
		return slog.New(slog.NewJSONHandler(jsonLines{to.Writer}, options))
	}

	l := &line{to: to, style: style}
	return slog.New(handler{slog.NewTextHandler(&l.attrs, &slog.HandlerOptions{Level: level, ReplaceAttr: l.attr}), l})
}

// handler writes records as text: time, level and message as its style has
// them, then key=value as slog.TextHandler writes it.
type handler struct {
	slog.Handler
	line *line
}

// line is where a log goes, and the record that is being written.
type line struct {
	to    ui.Stream
	style Style

	mu    sync.Mutex
	attrs bytes.Buffer // attributes as text
	day   time.Time    // of the record
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.line}
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.line}
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	l := h.line
	l.mu.Lock()
	defer l.mu.Unlock()

	l.attrs.Reset()
	l.day = r.Time
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}

	text := humanize.Safe(r.Message)
	attrs := strings.TrimSuffix(l.attrs.String(), "\n")
	if attrs != "" && l.style != Journal {
		text = fmt.Sprintf("%-15s", text)
	}
	if attrs != "" {
		text += " " + attrs
	}

	level := fmt.Sprintf("%-5s", r.Level)
	switch l.style {
	case Journal:
		text = fmt.Sprintf("<%d>%s", priority(r.Level), text)
	case Terminal:
		level = l.to.Paint(levelColour(r.Level), level)
		text = r.Time.Format(time.TimeOnly) + " " + level + " " + text + hints[r.Message]
	default:
		text = r.Time.Format(ui.StampLayout) + " " + level + " " + text
	}

	_, err := io.WriteString(l.to, text+"\n")
	return err
}

// hints has what the style Terminal adds to some messages.
var hints = map[string]string{"draining": " (again to stop now)"}

// attr leaves out time, level and message, which Handle writes, and shortens
// times and durations. On a terminal a time of the record's day has no date.
func (l *line) attr(groups []string, a slog.Attr) slog.Attr {
	switch v := a.Value; {
	case len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey):
		return slog.Attr{}
	case v.Kind() == slog.KindTime:
		layout := ui.StampLayout
		if l.style == Terminal {
			layout = time.DateTime
			if v.Time().Local().Format(time.DateOnly) == l.day.Local().Format(time.DateOnly) {
				layout = time.TimeOnly
			}
		}
		return slog.String(a.Key, v.Time().Local().Format(layout))
	case v.Kind() == slog.KindDuration:
		return slog.Duration(a.Key, v.Duration().Round(time.Millisecond))
	}
	return a
}

func levelColour(level slog.Level) ui.Colour {
	switch {
	case level >= slog.LevelError:
		return ui.Red
	case level >= slog.LevelWarn:
		return ui.Yellow
	case level < slog.LevelInfo:
		return ui.Dim
	}
	return ""
}

// priority returns the number that syslog and the journal use for a level.
func priority(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}

// jsonLogValue formats times and durations as the rest of runner's JSON does.
func jsonLogValue(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.String(a.Key, ui.Stamp(a.Value.Time()).String())
	case slog.KindDuration:
		return slog.Any(a.Key, ui.Seconds(a.Value.Duration()))
	}
	return a
}

// jsonLines escapes characters that can control a terminal.
type jsonLines struct{ io.Writer }

func (w jsonLines) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, ui.EscapeJSON(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

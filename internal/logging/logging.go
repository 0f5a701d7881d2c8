// Package logging writes the log of a worker in a format for a terminal, for the systemd journal, or as JSON.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
)

// Style is the format of log records.
type Style int

const (
	Plain    Style = iota // a time in the format of RFC 3339, the level, the message, key=value
	Terminal              // like Plain, but with the time of day only; for people
	Journal               // <priority>message key=value; no time, because the journal adds it
	JSON                  // one JSON object per line
)

// StyleFor returns the style for the value of --log-format. If the value is auto, the style depends on where the log goes.
func StyleFor(format string, to term.Stream, journalStream string) Style {
	switch {
	case format == "json":
		return JSON
	case format == "text":
		return Plain
	case to.TTY:
		return Terminal
	case isJournal(to.Writer, journalStream):
		return Journal
	}
	return Plain
}

// isJournal reports whether w is connected to the journal of systemd. The parameter journalStream is the value of $JOURNAL_STREAM, which
// contains the device and inode of that connection.
func isJournal(w io.Writer, journalStream string) bool {
	file, ok := w.(*os.File)
	if !ok || journalStream == "" {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	// The type of info.Sys() depends on the operating system, so this code reads its fields by reflection.
	sys := reflect.Indirect(reflect.ValueOf(info.Sys()))
	if sys.Kind() != reflect.Struct {
		return false
	}
	device, inode := sys.FieldByName("Dev"), sys.FieldByName("Ino")
	return device.IsValid() && inode.IsValid() && fmt.Sprintf("%v:%v", device, inode) == journalStream
}

// New returns a logger that writes the log of a worker to a stream. Each record is one line, even if a name or output contains newlines.
func New(to term.Stream, style Style, level slog.Level) *slog.Logger {
	if style == JSON {
		return slog.New(slog.NewJSONHandler(jsonLines{to.Writer}, &slog.HandlerOptions{Level: level, ReplaceAttr: jsonLogValue}))
	}
	return slog.New(&logHandler{to: to, style: style, level: level, mu: &sync.Mutex{}})
}

// logHints maps some messages to a hint for the user. The style Terminal adds the hint to the message.
var logHints = map[string]string{"draining": " (again to stop now)"}

// logHandler writes records as text.
type logHandler struct {
	to    term.Stream
	style Style
	level slog.Level
	mu    *sync.Mutex // protects the stream
	group string      // prefix for the keys of attributes that are added later; WithGroup sets it
	attrs string      // attributes that WithAttrs added, already formatted
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	more := *h
	if name != "" {
		more.group += name + "."
	}
	return &more
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	for _, a := range attrs {
		more.attrs += h.attr(h.group, a, time.Time{})
	}
	return &more
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	message := humanize.Safe(r.Message)
	if r.NumAttrs() > 0 || h.attrs != "" {
		if h.style != Journal {
			message = fmt.Sprintf("%-14s ", message)
		}
	}
	level := fmt.Sprintf("%-5s", r.Level)
	switch h.style {
	case Journal:
		fmt.Fprintf(&b, "<%d>%s", priority(r.Level), message)
	case Terminal:
		fmt.Fprintf(&b, "%s %s %s", r.Time.Format(time.TimeOnly), h.to.Paint(levelColour(r.Level), level), message)
	default:
		fmt.Fprintf(&b, "%s %s %s", r.Time.Format(record.StampLayout), level, message)
	}
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(h.attr(h.group, a, r.Time))
		return true
	})
	if h.style == Terminal {
		b.WriteString(logHints[r.Message])
	}
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.to, b.String())
	return err
}

// attr formats an attribute as " key=value". A group becomes one such text for each of its attributes. In the style
// Terminal a time has no date if it is on the same day as the record.
func (h *logHandler) attr(group string, a slog.Attr, day time.Time) string {
	v := a.Value.Resolve()
	text := ""
	switch v.Kind() {
	case slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, one := range v.Group() {
			text += h.attr(group, one, day)
		}
		return text
	case slog.KindTime:
		local := v.Time().Local()
		switch {
		case h.style != Terminal:
			text = local.Format(record.StampLayout)
		case local.Format(time.DateOnly) == day.Local().Format(time.DateOnly):
			text = local.Format(time.TimeOnly)
		default:
			text = local.Format(time.DateTime)
		}
	case slog.KindDuration:
		text = v.Duration().Round(time.Millisecond).String()
		for _, zero := range []string{"m0s", "h0m"} { // write 1m0s as 1m, and 1h0m0s as 1h
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
	default:
		text = v.String()
	}
	if a.Key == "" && text == "" {
		return ""
	}
	return " " + logText(group+a.Key) + "=" + logText(text)
}

// logText quotes a key or value if it is not a single word, or if it contains characters that can control a terminal.
func logText(text string) string {
	quoted := func(r rune) bool {
		return !unicode.IsPrint(r) || strings.ContainsRune(` "=`, r) || r == unicode.ReplacementChar
	}
	if text == "" || strings.ContainsFunc(text, quoted) {
		return strconv.Quote(text)
	}
	return text
}

func levelColour(level slog.Level) term.Colour {
	switch {
	case level >= slog.LevelError:
		return term.Red
	case level >= slog.LevelWarn:
		return term.Yellow
	case level < slog.LevelInfo:
		return term.Dim
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

// jsonLogValue formats times and durations in the same way as the rest of runner's JSON.
func jsonLogValue(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		return slog.String(a.Key, record.Stamp(a.Value.Time()).String())
	case slog.KindDuration:
		return slog.Any(a.Key, record.Seconds(a.Value.Duration()))
	}
	return a
}

// jsonLines writes lines of JSON. It escapes characters that can control a terminal.
type jsonLines struct{ io.Writer }

func (w jsonLines) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, term.EscapeJSON(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

package humanize

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// Safe escapes control characters, characters that change the direction of
// text, and bytes that aren't UTF-8: \n, \t, \x1b, \u202e. Other characters
// stay.
func Safe(text string) string { return escape(text, "") }

// SafeLines is Safe for several lines: it keeps newlines and tabs.
func SafeLines(text string) string { return escape(text, "\n\t") }

// escape escapes what could control a terminal, but not the characters in kept.
func escape(text, kept string) string {
	if !strings.ContainsFunc(text, IsControl) {
		return text
	}

	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch at := strings.IndexRune("\n\t\r", r); {
		case !IsControl(r), r == utf8.RuneError && size > 1, strings.ContainsRune(kept, r):
			b.WriteString(text[i : i+size])
		case at >= 0:
			b.WriteString(`\` + "ntr"[at:at+1])
		case r < 0x80 || r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}

		i += size
	}

	return b.String()
}

// IsControl reports whether a character could control a terminal. So could
// utf8.RuneError, which stands for invalid UTF-8.
func IsControl(r rune) bool {
	switch {
	case r < 0x20, 0x7f <= r && r <= 0x9f: // control characters: C0, DEL and C1
		return true
	// Characters that change the direction of text.
	case r == 0x061c, r == 0x200e, r == 0x200f, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff: // line separator, paragraph separator and byte order mark
		return true
	}
	return r == utf8.RuneError
}

// Age formats a duration in one unit (12s, 9m, 21h, 16d), or in two from one to
// ten hours (1h30m) and from one to ten days (6d4h).
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour && d%time.Hour >= time.Minute:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day && d%day >= time.Hour:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}

	return fmt.Sprintf("%dd", d/day)
}

// Took formats a run time with two digits or two units: 142ms, 2.1s, 11s,
// 4m02s, 1h0m, 6d4h.
func Took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Size formats a number of bytes: 118 B, 1.2 MB, 84 MB.
func Size(bytes int64) string { return humanize.Bytes(uint64(max(bytes, 0))) }

// Count formats a number with commas: 1,284.
func Count(n int64) string { return humanize.Comma(n) }

// Plural formats a number with a noun: 1 task, 1,203 tasks.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(int64(n)) + " " + thing + "s"
}

// Clock formats a time in the zone of now, without the date if both are on the
// same day.
func Clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Rounded rounds a duration from a second on to whole seconds: 47.78 s becomes
// 48 s.
func Rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d
	}
	return d.Round(time.Second)
}

// Does formats a number with a noun and a verb: 1 task waits, 2 tasks wait.
func Does(n int, thing, one, many string) string {
	if n == 1 {
		return Plural(n, thing) + " " + one
	}
	return Plural(n, thing) + " " + many
}

// Soon rounds a duration up to whole seconds: an event in 900 ms is due in 1 s,
// not in 0 s.
func Soon(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// ExactSize formats a number of bytes without rounding, as flags accept it:
// 1MiB, 1000.
func ExactSize(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.size && bytes%u.size == 0 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// ParseSize parses a number of bytes, as ExactSize writes it.
func ParseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for shift, name := range map[int]string{10: "K", 20: "M", 30: "G"} {
		if rest, ok := strings.CutSuffix(strings.TrimSuffix(text, "iB"), name); ok { // K is KiB, as in docker
			number, unit = rest, 1<<shift
		}
	}

	if strings.Trim(number, "0123456789") != "" || number == "" {
		return 0, errors.New("invalid size; use 65536, 64KiB, 1MiB or 1GiB")
	}

	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errors.New("too large")
	}

	return n * unit, nil
}

// TasksWait formats a number of waiting tasks: 1 task waits, 118 tasks wait.
func TasksWait(n int) string { return Does(n, "task", "waits", "wait") }

// Cut shortens text to at most n bytes. A shortened text ends with an ellipsis.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}

// Reason returns the innermost error that err wraps: that of the operating
// system. The outer ones only add operations and paths.
func Reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

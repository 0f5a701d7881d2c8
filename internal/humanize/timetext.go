package humanize

import (
	"cmp"
	"errors"
	"strconv"
	"time"
)

// Callers put the typed text before these errors.
var (
	errUnits    = errors.New("missing unit; use 250ms, 10s, 5m, 2h, 1d or 1w")
	errDuration = errors.New("invalid duration; use 250ms, 10s, 5m, 1.5h, 1d, 1w, or a sum such as 1h30m")
	errFine     = errors.New("too exact; use whole milliseconds")
)

// units are what WriteDuration uses, largest first.
var units = []struct {
	name string
	size time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseDuration parses a number with a unit such as 90m or 1.5h, or a sum such
// as 1h30m. Zero needs no unit. The database stores milliseconds, so there is
// nothing smaller.
func ParseDuration(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil && text != "0" {
		return 0, errUnits
	}

	d, err := time.ParseDuration(longUnit().ReplaceAllStringFunc(text, inMilliseconds))
	switch {
	case err != nil || d < 0 || text[0] == '+' || text[0] == '-':
		return 0, errDuration
	case d%time.Millisecond != 0:
		return 0, errFine
	}

	return d, nil
}

// longUnit matches a number of days or weeks, which package time doesn't know.
var longUnit = Lazy(`[0-9.]+[dw]`)

func inMilliseconds(text string) string {
	unit := len(text) - 1
	n, err := strconv.ParseFloat(text[:unit], 64)
	if err != nil {
		return text
	}
	n *= 24 * time.Hour.Seconds() * 1000
	if text[unit] == 'w' {
		n *= 7
	}
	return strconv.FormatFloat(n, 'f', 3, 64) + "ms"
}

// WriteDuration formats a duration as ParseDuration parses it: 1h30m, 30d,
// 250ms.
func WriteDuration(d time.Duration) string {
	if d <= 0 {
		return "0"
	}

	text := ""
	for _, u := range units {
		if n := d / u.size; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + u.name
			d -= n * u.size
		}
	}

	return cmp.Or(text, "0")
}

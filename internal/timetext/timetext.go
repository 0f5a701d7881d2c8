// Package timetext parses and formats durations and times in the formats that users type.
package timetext

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// These errors mean that a duration cannot be parsed. The caller puts the typed text before the text of the error.
var (
	errUnits    = errors.New("missing unit; use 250ms, 10s, 5m, 2h, 1d or 1w")
	errDuration = errors.New("invalid duration; use 250ms, 10s, 5m, 1.5h, 1d, 1w, or a sum such as 1h30m")
	errLong     = errors.New("too long")
	errFine     = errors.New("too exact; use whole milliseconds")
)

// units are the units of a duration, largest first. WriteDuration does not use weeks.
var units = []struct {
	name string
	size time.Duration
}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// ParseDuration parses a number with a unit such as 90m or 1.5h, or a sum such as 1h30m. Zero needs no unit. The smallest unit is the
// millisecond, because the database stores milliseconds.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, errUnits
	}
	var sum time.Duration
	for rest := text; rest != "" || text == ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		rest = rest[len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = rest[len(unit):]
		size := time.Duration(0)
		for _, u := range units {
			if u.name == unit {
				size = u.size
			}
		}
		whole, fraction, decimal := strings.Cut(number, ".")
		if whole == "" || size == 0 || decimal && (fraction == "" || strings.Contains(fraction, ".")) {
			return 0, errDuration
		}
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n > int64((math.MaxInt64-sum)/size) {
			return 0, errLong
		}
		sum += time.Duration(n) * size
		part, err := parseFraction(fraction, size)
		switch {
		case err != nil:
			return 0, err
		case part > math.MaxInt64-sum:
			return 0, errLong
		}
		sum += part
	}
	return sum, nil
}

// parseFraction returns the duration for the digits after a decimal point. The parameter "size" is the length of the unit.
func parseFraction(digits string, size time.Duration) (time.Duration, error) {
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return 0, nil
	}
	const most = 9 // maximum number of digits, so that the calculation does not overflow
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(digits) > most {
		return 0, errFine
	}
	n *= size.Milliseconds()
	for range digits {
		if n%10 != 0 {
			return 0, errFine
		}
		n /= 10
	}
	return time.Duration(n) * time.Millisecond, nil
}

// WriteDuration formats a duration so that ParseDuration can parse it, such as 1h30m, 30d or 250ms.
func WriteDuration(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	text := ""
	for _, u := range units[1:] {
		if n := d / u.size; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + u.name
			d -= n * u.size
		}
	}
	return cmp.Or(text, "0")
}

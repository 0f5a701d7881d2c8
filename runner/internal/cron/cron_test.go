package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron/crontest"
)

// changes are dates in time zones whose clocks jump on that date: by an hour,
// half an hour, two hours or a whole day, some of them at midnight. On the last
// two dates no clock jumps.
var changes = []struct{ zone, at string }{
	{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"}, {"America/New_York", "2026-03-08"},
	{"America/New_York", "2026-11-01"},
	{"Australia/Lord_Howe", "2026-10-04"}, {"Australia/Lord_Howe", "2026-04-05"}, {"Antarctica/Troll", "2026-03-29"},
	{"Antarctica/Troll", "2026-10-25"},
	{"America/Sao_Paulo", "2018-11-04"}, {"America/Sao_Paulo", "2018-02-18"}, {"Asia/Beirut", "2024-03-31"},
	{"America/St_Johns", "2026-11-01"},
	{"Pacific/Apia", "2011-12-30"}, {"Africa/Casablanca", "2026-02-15"}, {"Europe/Dublin", "2026-10-25"}, {"Asia/Kolkata", "2026-05-01"},
	{"UTC", "2024-02-29"},
}

var someField = func(low, high, near int, words string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		value := rapid.OneOf(rapid.IntRange(low, high), rapid.IntRange(low, min(high, near)))
		word := func(n int) string {
			if words != "" && n-low < len(words)/4 && rapid.Bool().Draw(t, "word") {
				return words[4*(n-low) : 4*(n-low)+3]
			}
			return strconv.Itoa(n)
		}
		part := func() string {
			a := value.Draw(t, "value")
			b := rapid.IntRange(a, high).Draw(t, "end")
			end := word(b)
			if strings.EqualFold(end, "sun") {
				end = "7"
			}
			switch rapid.IntRange(0, 5).Draw(t, "form") {
			case 0:
				return word(a) + "-" + end
			case 1:
				return fmt.Sprintf("%s-%s/%d", word(a), end, rapid.IntRange(1, max(high/2, 1)).Draw(t, "step"))
			case 2:
				return fmt.Sprintf("*/%d", rapid.IntRange(1, high).Draw(t, "step"))
			}
			return word(a)
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0, 1:
			return "*"
		case 2:
			return part() + "," + part()
		}
		return part()
	})
}

func someExpression(t *rapid.T, month int) string {
	months := strconv.Itoa(month)
	if rapid.IntRange(0, 3).Draw(t, "any month") > 0 {
		months = someField(1, 12, month, "jan feb mar apr may jun jul aug sep oct nov dec ").Draw(t, "month")
	}
	return strings.Join([]string{someField(0, 59, 30, "").Draw(t, "minute"), someField(0, 23, 3, "").Draw(t, "hour"),
		someField(1, 31, 31, "").Draw(t, "day"), months, someField(0, 7, 7, "SUN MON TUE WED THU FRI SAT ").Draw(t, "weekday")}, " ")
}

// TestTicksAgainstOracle compares this package with package crontest. It uses
// random expressions and times around clock changes in many zones.
func TestTicksAgainstOracle(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		c, err := Parse("* * * * *", change.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, _ := time.ParseInLocation(time.DateOnly, change.at, c.zone)
		from := day.Add(-6 * time.Hour).UTC().Truncate(time.Minute)
		to := from.Add(34 * time.Hour)
		expr := someExpression(t, int(day.Month()))
		c, err = Parse(expr, change.zone)
		if p := (*jobs.Error)(nil); errors.As(err, &p) && strings.HasSuffix(p.What, "no date matches") {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		want := crontest.Ticks(expr, c.zone, from, to)
		var got []time.Time
		for tick := c.Next(from.Add(-time.Millisecond)); !tick.IsZero() && tick.Before(to) && len(got) <= len(want); tick = c.Next(tick) {
			got = append(got, tick)
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s in %s:\n got %v\nwant %v", expr, change.zone, got, want)
		}
		compared += len(want)
		last := to.Add(-time.Millisecond)
		n := rapid.IntRange(1, 150).Draw(t, "n")
		if got := c.newest(from, from, last, n); !slices.EqualFunc(got, want[max(len(want)-n, 0):], time.Time.Equal) {
			t.Fatalf("newest %d of %s in %s:\n got %v\nwant %v", n, expr, change.zone, got, want)
		}
	})
	if compared == 0 {
		t.Error("got no tick to compare, want at least one")
	}
}

// TestTicksOverYears compares this package with package crontest. It checks the
// next tick of random expressions after random times, which may be years later.
func TestTicksOverYears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := someExpression(t, 2)
		c, err := Parse(expr, "UTC")
		if err != nil {
			return
		}
		from := time.Date(2023, 1, 1, 0, rapid.IntRange(0, 6*365*24*60).Draw(t, "minute"), 30, 0, time.UTC)
		got := c.Next(from)
		names := crontest.Parse(expr)
		for day := from.Truncate(24 * time.Hour); ; day = day.AddDate(0, 0, 1) {
			if day.After(got.AddDate(0, 0, 1)) {
				t.Fatalf("%s after %v: got %v, want a tick of the oracle", expr, from, got)
			}
			if !names.HasDay(day) {
				continue
			}
			for at := day; at.Before(day.AddDate(0, 0, 1)); at = at.Add(time.Minute) {
				if at.After(from) && names.Hits(at) {
					if !at.Equal(got) {
						t.Fatalf("%s after %v: got %v, want %v", expr, from, got, at)
					}
					return
				}
			}
		}
	})
}

func TestParse(t *testing.T) {
	from := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"*/60 * * * *":    "2026-01-31 14:00",
		"7-59/60 * * * *": "2026-01-31 13:07",
		"0 */24 * * *":    "2026-02-01 00:00",
		"0 0 */31 * *":    "2026-02-01 00:00",
		"0 0 1 */12 *":    "2027-01-01 00:00",
		"0 0 * * */7":     "2026-02-01 00:00", // a Sunday
		"@every 1d12h":    "2026-02-02 01:00",
		"@every 1w":       "2026-02-07 13:00",
		"@every 1.5h":     "2026-01-31 14:30",
		"@DAILY":          "2026-02-01 00:00",

		"*/61 * * * *":                    `minute */61: step "61" is out of range (1-60); use @every 61m`,
		"0 */36 * * *":                    `hour */36: step "36" is out of range (1-24); use @every 36h`,
		"0 0 * * */8":                     `day of week */8: step "8" is out of range (1-7)`,
		"*/0 * * * *":                     `minute */0: step "0" is out of range (1-60)`,
		"@every 1d12":                     `invalid duration "1d12"; use 90s, 5m, 2h, 1d, 1w, or a sum such as 1d12h`,
		"@every -1h":                      `invalid duration "-1h"; use 90s, 5m, 2h, 1d, 1w, or a sum such as 1d12h`,
		"@every 0":                        `0 is out of range (1s to 10 years)`,
		"@every 521w3d":                   "",
		"@every 522w":                     `522w is out of range (1s to 10 years)`,
		"@every 1d0.5s":                   `1d0.5s is not a number of whole seconds`,
		"daily":                           `did you mean @daily?`,
		"Reboot":                          `did you mean @reboot?`,
		"every 5m":                        `did you mean @every 5m?`,
		"CRON_TZ=Europe/Berlin 0 3 * * *": `a time zone is no part of the expression; set the zone Europe/Berlin apart`,
		"TZ=Europe/Berlin @daily":         `a time zone is no part of the expression; set the zone Europe/Berlin apart`,
		"0 0 3 * * *":                     `6 fields; five are needed: minute, hour, day of month, month, day of week`,
	} {
		x, err := Parse(text, "UTC")
		var p *jobs.Error
		switch errors.As(err, &p) {
		case true:
			if p.What != fmt.Sprintf("cron %q: %s", text, want) {
				t.Errorf("%s: got error %q, want %q", text, p.What, want)
			}
		case false:
			if got := x.Next(from).Format("2006-01-02 15:04"); want != "" && got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

// TestRarestDayIsFound checks February 29 on each weekday, for all years of
// a cycle of the calendar.
func TestRarestDayIsFound(t *testing.T) {
	for weekday := range 7 {
		x, err := Parse("0 0 29 2 */7", "UTC")
		if err != nil {
			t.Fatal(err)
		}
		x.values[4] = 1 << weekday
		for at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2400; {
			next := x.Next(at)
			if next.IsZero() {
				t.Fatalf("day %d of the week: got no 29 February after %v, want one", weekday, at)
			}
			at = next
		}
	}
}

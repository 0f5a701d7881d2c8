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

// changes are dates in time zones whose clocks jump on that date: by an hour, half an hour, two hours or a whole day, some of them at
// midnight. On the last two dates no clock jumps.
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

// TestTicksAgainstTheOracle compares this package with package crontest. It uses random expressions and times around clock changes in many
// zones.
func TestTicksAgainstTheOracle(t *testing.T) {
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

// TestTicksOverYears compares this package with package crontest. It checks the next tick of random expressions after random times, which
// may be years later.
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

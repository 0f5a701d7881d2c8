package humanize

import (
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "10s": 10 * time.Second, "5m": 5 * time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour,
		"1w": 168 * time.Hour, "1h30m": 90 * time.Minute, "1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond,
		"0": 0, "0s": 0, "90m": 90 * time.Minute, "1.5h": 90 * time.Minute, "0.25s": 250 * time.Millisecond, "1.50d": 36 * time.Hour,
		"0.5w12h": 96 * time.Hour, "0.7d": 1008 * time.Minute, "1.1w": 11088 * time.Minute, "15250w": 15250 * 168 * time.Hour,
	} {
		if d, err := ParseDuration(text); err != nil || d != want {
			t.Errorf("%s: got %v, error %v; want %v", text, d, err, want)
		}
	}
	for text, want := range map[string]error{
		"5": errUnits, "-5": errUnits, "1.5": errUnits, "": errDuration, "s": errDuration, "-5s": errDuration, "+5s": errDuration,
		"-0s": errDuration, "1.2.3h": errDuration, "1.2.3d": errDuration, "1.5ms": errFine, "0.3333333333w": errFine,
		"0.0000001d": errFine, "5 s": errDuration, "5S": errDuration, "1h30": errDuration, "10us": errFine,
		"15250.9999w": errDuration, "99999999w": errDuration, "99999999999999999999s": errDuration,
	} {
		if d, err := ParseDuration(text); err != want {
			t.Errorf("%q: %v %v, want %v", text, d, err, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1h30m")
	f.Add("15250w9999999h")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		again, err := ParseDuration(WriteDuration(d))
		if d < 0 || d%time.Millisecond != 0 || err != nil || again != d {
			t.Fatalf("%q: got %v, written as %q and read as %v (%v); want the same duration in whole milliseconds", text, d,
				WriteDuration(d), again, err)
		}
	})
}

func TestTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	now := time.Date(2026, 1, 31, 14, 0, 0, 0, berlin)
	// at is for ParseTime, and when for ParseWhen; - means an error.
	for _, test := range []struct{ text, at, when string }{
		{"15:04", "2026-01-31T15:04:00+01:00", "2026-01-30T15:04:00+01:00"},
		{"14:00", "2026-02-01T14:00:00+01:00", "2026-01-31T14:00:00+01:00"},
		{"13:00", "2026-02-01T13:00:00+01:00", "2026-01-31T13:00:00+01:00"},
		{"2026-03-01 12:30", "2026-03-01T12:30:00+01:00", "2026-03-01T12:30:00+01:00"},
		{"2026-07-01 12:30:15", "2026-07-01T12:30:15+02:00", "2026-07-01T12:30:15+02:00"},
		{"2026-01-31T13:02:11.004Z", "2026-01-31T14:02:11+01:00", "2026-01-31T14:02:11+01:00"},
		{"2026-07-01 12:30:15+02:00", "2026-07-01T12:30:15+02:00", "2026-07-01T12:30:15+02:00"}, // date --rfc-3339=seconds
		{"2026-07-01 12:30:15.25Z", "2026-07-01T14:30:15+02:00", "2026-07-01T14:30:15+02:00"},
		{"2026-01-31", "2026-01-31T00:00:00+01:00", "2026-01-31T00:00:00+01:00"},
		{"2026-12-01", "2026-12-01T00:00:00+01:00", "2026-12-01T00:00:00+01:00"},
		{"2026-07-01T12:30", "2026-07-01T12:30:00+02:00", "2026-07-01T12:30:00+02:00"},
		{"2026-07-01T12:30:15", "2026-07-01T12:30:15+02:00", "2026-07-01T12:30:15+02:00"},
		{"2026-07-01 5:30PM", "2026-07-01T17:30:00+02:00", "2026-07-01T17:30:00+02:00"},
		{"1h30m", "-", "2026-01-31T12:30:00+01:00"}, {"1.5h", "-", "2026-01-31T12:30:00+01:00"},
		{"+1.5h", "2026-01-31T15:30:00+01:00", "2026-01-31T15:30:00+01:00"},
		{"-90m", "2026-01-31T12:30:00+01:00", "2026-01-31T12:30:00+01:00"},
		{"5pm", "2026-01-31T17:00:00+01:00", "2026-01-30T17:00:00+01:00"},
		{"12am", "2026-02-01T00:00:00+01:00", "2026-01-31T00:00:00+01:00"},
		{"tomorrow 03:00", "2026-02-01T03:00:00+01:00", "2026-02-01T03:00:00+01:00"},
		{"tomorrow 3am", "2026-02-01T03:00:00+01:00", "2026-02-01T03:00:00+01:00"},
		{"today 03:00", "2026-01-31T03:00:00+01:00", "2026-01-31T03:00:00+01:00"},
		{"yesterday 15:04:05", "2026-01-30T15:04:05+01:00", "2026-01-30T15:04:05+01:00"},
		{"@1790000000", "2026-09-21T16:13:20+02:00", "2026-09-21T16:13:20+02:00"},
		{"+5", "-", "-"}, {"13pm", "-", "-"}, {"5p", "-", "-"}, {"@", "-", "-"}, {"@-1", "-", "-"}, {"@1.5", "-", "-"},
		{"@99999999999999", "-", "-"}, {"tomorrow 25:00", "-", "-"}, {"tomorrow  03:00", "-", "-"}, {"2026-01-31 tomorrow", "-", "-"},
		{"5", "-", "-"}, {"", "-", "-"}, {"25:00", "-", "-"}, {"2026-13-01", "-", "-"}, {"tomorrow", "-", "-"}, {"0", "-", "-"},
	} {
		for _, one := range []struct {
			name, want string
			parse      func(string, time.Time, *time.Location) (time.Time, error)
		}{{"TIME", test.at, ParseTime}, {"WHEN", test.when, ParseWhen}} {
			got := "-"
			if moment, err := one.parse(test.text, now, berlin); err == nil {
				got = moment.In(berlin).Format(time.RFC3339)
			}
			if got != one.want {
				t.Errorf("%s %q: %s, want %s", one.name, test.text, got, one.want)
			}
		}
	}
	// On the day on which summer time begins there is no 02:30. The next day
	// has a 02:30.
	night := time.Date(2026, 3, 29, 4, 0, 0, 0, berlin)
	at, _ := ParseTime("02:30", night, berlin)
	testkit.Equal(t, "time", at.Format(time.RFC3339), "2026-03-30T02:30:00+02:00")
}

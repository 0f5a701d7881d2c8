package cron

import (
	"math/bits"
	"time"
)

// searchYears is the number of years that onClock searches. The rarest
// expression matches February 29 on a given weekday: around a year such as
// 2100, which is no leap year, 40 years pass between two of them. onClock needs
// one more, because its last day doesn't count.
const searchYears = 41

// onClock returns the first matching clock reading after wall, on a clock that
// never jumps. It returns false if there is none. Both times are clock
// readings, stored as if they were UTC.
func (x *Expression) onClock(wall time.Time) (time.Time, bool) {
	wall = wall.Truncate(time.Minute).Add(time.Minute)
	day, firstHour, firstMinute := wall.Truncate(24*time.Hour), wall.Hour(), wall.Minute()
	for last := day.AddDate(searchYears, 0, 0); day.Before(last); {
		if x.values[month]>>day.Month()&1 == 0 {
			day, firstHour, firstMinute = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC), 0, 0
			continue
		}
		if x.matchesDay(day) {
			for h := firstIn(x.values[hour], firstHour); h < 24; h = firstIn(x.values[hour], h+1) {
				if h > firstHour {
					firstMinute = 0
				}
				if m := firstIn(x.values[minute], firstMinute); m < 60 {
					return day.Add(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute), true
				}
			}
		}

		day, firstHour, firstMinute = day.AddDate(0, 0, 1), 0, 0
	}

	return time.Time{}, false
}

// matchesDay reports whether the fields day of month and day of week allow a
// day.
func (x *Expression) matchesDay(day time.Time) bool {
	byDate, byWeekday := x.values[monthDay]>>day.Day()&1 == 1, x.values[weekday]>>day.Weekday()&1 == 1
	if x.eitherDay {
		return byDate || byWeekday
	}
	return byDate && byWeekday
}

// firstIn returns the smallest value of a set from low on, or 64 or more if
// there is none.
func firstIn(set uint64, low int) int {
	return low + bits.TrailingZeros64(set>>low)
}

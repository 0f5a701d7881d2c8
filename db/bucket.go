package db

import (
	"math"
	"time"
)

// bucket is the state of a rate limit, a token bucket. Its unit makes all
// values integers: a start takes Limit.Per in milliseconds, and each
// millisecond adds Limit.Rate. The level may go negative: a lost task starts
// again without waiting for a token.
type bucket struct {
	level int64
	at    time.Time
}

// fullBucket returns the bucket of a limit that has not been used for a long
// time.
func fullBucket(l Limit, now time.Time) bucket {
	return bucket{int64(l.Burst) * l.Per.Milliseconds(), now}
}

// fill adds what has come in until now. If the clock was set back, nothing has.
func (b bucket) fill(l Limit, now time.Time) bucket {
	full := fullBucket(l, now)
	if gone := now.UnixMilli() - b.at.UnixMilli(); gone > 0 {
		if need := full.level - b.level; gone > need/int64(max(l.Rate, 1)) { // divide, because the product gone * Rate could overflow
			b.level = full.level
		} else {
			b.level += gone * int64(l.Rate)
		}
	}
	return bucket{min(b.level, full.level), now}
}

// starts returns how many tasks may start now or, if none may, when the next
// one may.
func (b bucket) starts(l Limit, now time.Time) (n int, next time.Time) {
	if l.Rate == 0 {
		return math.MaxInt, time.Time{}
	}
	per, rate := l.Per.Milliseconds(), int64(l.Rate)
	b = b.fill(l, now)
	if b.level >= per {
		return int(b.level / per), time.Time{}
	}
	return 0, now.Truncate(time.Millisecond).Add(time.Duration((per-b.level+rate-1)/rate) * time.Millisecond)
}

// take returns the bucket after n starts at the time now.
func (b bucket) take(l Limit, n int, now time.Time) bucket {
	b = b.fill(l, now)
	b.level -= int64(n) * l.Per.Milliseconds()
	return b
}

package taskspec

import (
	"math"
	"time"

	"example.com/runner/jobs"
)

// Delay returns how long a task waits after attempt n; the first attempt has number 1. The strategy determines the delay. The delay is at
// most Max, plus or minus up to 10 % of jitter. The jitter is a hash of id and n: the retries of many tasks spread out, and the same
// arguments always give the same delay.
func Delay(b jobs.Backoff, id int64, n int) time.Duration {
	n = max(n, 1)
	delay := float64(b.Delay)
	switch b.Strategy {
	case jobs.Fixed:
	case jobs.Linear:
		delay *= float64(n)
	default:
		delay = math.Ldexp(delay, min(n-1, 1000))
	}
	delay = max(min(delay, float64(b.Max), math.MaxInt64/2), 0) // a user may have written any number with SQL
	return time.Duration(delay * (0.9 + 0.2*chance(uint64(id), uint64(n))))
}

// chance maps two numbers to a number in [0, 1) that looks random. It uses the last step of splitmix64 (Steele, Lea, Flood, 2014).
func chance(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

package lifecycle

import (
	"math"
	"time"

	"example.com/runner/jobs"
)

// Delay returns the delay after an attempt of a task. The parameter n is the number of the attempt, from 1. The delay is that of the
// strategy, but at most Max, plus or minus up to 10 % of jitter. The jitter is a hash of id and n. So the retries of many tasks spread out,
// and the same arguments always give the same delay.
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
	delay = max(min(delay, float64(b.Max), math.MaxInt64/2), 0) // plain SQL can write any number, so the bounds are necessary
	return time.Duration(delay * (0.9 + 0.2*chance(uint64(id), uint64(n))))
}

// chance maps two numbers to [0, 1) with the finalizer of splitmix64 (Steele, Lea, Flood, 2014).
func chance(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

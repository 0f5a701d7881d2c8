package jobs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Strategy says how the delay before the next attempt grows.
type Strategy string

// The strategies, for the delay d after attempt n.
const (
	Fixed       Strategy = "fixed"       // d
	Linear      Strategy = "linear"      // n·d
	Exponential Strategy = "exponential" // d·2^(n-1)
)

// Backoff is the delay between the attempts of a task. The zero Backoff retries at once.
type Backoff struct {
	Strategy Strategy      // defaults to Exponential
	Delay    time.Duration // after the first attempt; 0: none
	Max      time.Duration // the delay never grows beyond it (but for the jitter)
}

// DefaultBackoff is the backoff of a task that names none.
var DefaultBackoff = Backoff{Strategy: Exponential, Delay: 10 * time.Second, Max: time.Hour}

// After returns the delay after attempt n (from 1) of task id: the strategy's, at most Max, then up to 10 % more or less.
// The jitter is a hash of id and n, so that a crowd of tasks spreads and yet every answer can be repeated.
func (b Backoff) After(id int64, n int) time.Duration {
	n = max(n, 1)
	delay := float64(b.Delay)
	switch b.Strategy {
	case Fixed:
	case Linear:
		delay *= float64(n)
	default:
		delay = math.Ldexp(delay, min(n-1, 1000))
	}
	delay = max(min(delay, float64(b.Max), math.MaxInt64/2), 0) // a row of plain SQL may hold any number
	return time.Duration(delay * (0.9 + 0.2*chance(uint64(id), uint64(n))))
}

// chance maps two numbers to [0, 1) by the finalizer of splitmix64 (Steele, Lea, Flood, 2014).
func chance(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// Codes is a set of exit codes as people write it: "75,100-111", each within 1-255. The empty set stands for any code.
type Codes string

// Contains says whether the set holds code. The empty set holds every code.
func (c Codes) Contains(code int) bool {
	if c == "" {
		return true
	}
	for part := range strings.SplitSeq(string(c), ",") {
		if low, high, err := codeRange(part); err == nil && low <= code && code <= high {
			return true
		}
	}
	return false
}

// Validate returns an error that names the part which is no exit code, or no range of them.
func (c Codes) Validate() error {
	if c == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(c), ",") {
		if _, _, err := codeRange(part); err != nil {
			return err
		}
	}
	return nil
}

func codeRange(part string) (low, high int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	if !isRange {
		to = from
	}
	low64, errLow := strconv.ParseUint(from, 10, 16) // unlike Atoi it takes no sign
	high64, errHigh := strconv.ParseUint(to, 10, 16)
	low, high = int(low64), int(high64)
	if errLow != nil || errHigh != nil || low < 1 || high > 255 || low > high {
		return 0, 0, fmt.Errorf("%q is no exit code or range of them within 1-255 (as in 75,100-111)", part)
	}
	return low, high, nil
}

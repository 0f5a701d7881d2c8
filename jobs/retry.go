package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Strategy is the rule by which the delay between attempts grows.
type Strategy string

// The strategies, with the delay after attempt n for a Delay of d.
const (
	Fixed       Strategy = "fixed"       // d
	Linear      Strategy = "linear"      // n·d
	Exponential Strategy = "exponential" // d·2^(n-1)
)

// Backoff is the delay between the attempts of a task. The zero Backoff retries at once. Each delay is up to 10 % shorter or longer than
// the strategy says, so that tasks that failed together do not start together again. This jitter depends only on the id of the task and the
// number of the attempt, and nothing turns it off. The delay of RetryIn and Snooze has no jitter.
type Backoff struct {
	Strategy Strategy      // default Exponential
	Delay    time.Duration // delay after the first attempt, plus or minus 10 %
	Max      time.Duration // upper limit of the delay, without the jitter
}

// DefaultBackoff is the backoff of a task that does not set one.
var DefaultBackoff = Backoff{Strategy: Exponential, Delay: 10 * time.Second, Max: time.Hour}

// Codes is a set of exit codes from 1 to 255, such as "75,100-111". The empty set stands for any code.
type Codes string

// Contains reports whether code is in the set. Every code is in the empty set.
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

// Validate returns an error that names the first invalid part.
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
	low64, errLow := strconv.ParseUint(from, 10, 16) // ParseUint, unlike Atoi, accepts no sign
	high64, errHigh := strconv.ParseUint(to, 10, 16)
	low, high = int(low64), int(high64)
	if errLow != nil || errHigh != nil || low < 1 || high > 255 || low > high {
		return 0, 0, fmt.Errorf("invalid exit codes %q; use codes and ranges within 1-255, such as 75,100-111", part)
	}
	return low, high, nil
}

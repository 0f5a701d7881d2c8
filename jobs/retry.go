package jobs

import "time"

// BackoffStrategy is the rule by which the delay between attempts grows.
type BackoffStrategy string

// These are the strategies. The comment of each one is the delay after attempt
// n, where d is the field Delay of the Backoff.
const (
	BackoffFixed       BackoffStrategy = "fixed"       // d
	BackoffLinear      BackoffStrategy = "linear"      // n·d
	BackoffExponential BackoffStrategy = "exponential" // d·2^(n-1)
)

// Backoff is the delay between the attempts of a task. The zero Backoff retries
// at once. Each delay is up to 10 % shorter or longer than the strategy says,
// so that tasks that failed together do not start together again. This jitter
// depends only on the id of the task and the number of the attempt, and nothing
// turns it off. The delay of RetryIn and Snooze has no jitter.
type Backoff struct {
	Strategy BackoffStrategy // default BackoffExponential
	Delay    time.Duration   // delay after the first attempt, plus or minus 10 %
	Max      time.Duration   // upper limit of the delay, without the jitter
}

var defaultBackoff = Backoff{Strategy: BackoffExponential, Delay: 10 * time.Second, Max: time.Hour}

package jobs

import (
	"errors"
	"math"
	"strings"
	"time"
)

// Target is what a limit applies to: a queue, a job or a lane.
type Target struct {
	Kind string // queue, job or lane
	Name string
}

// The kinds of targets.
const (
	QueueTarget = "queue"
	JobTarget   = "job"
	LaneTarget  = "lane"
)

// String returns the form that ParseTarget parses, such as queue:media.
func (t Target) String() string { return t.Kind + ":" + t.Name }

// ParseTarget parses queue:NAME, job:NAME or lane:KEY.
func ParseTarget(text string) (Target, error) {
	kind, name, found := strings.Cut(text, ":")
	if !found {
		return Target{}, invalid("target", "%q is none of queue:NAME, job:NAME, lane:KEY", text)
	}
	t := Target{Kind: kind, Name: name}
	return t, t.Validate()
}

// Validate returns a *FieldError of the field "target" if the target is invalid.
func (t Target) Validate() error {
	var err error
	switch t.Kind {
	case QueueTarget:
		err = ValidQueue(t.Name)
	case JobTarget:
		err = ValidJob(t.Name)
	case LaneTarget:
		if t.Name == "" {
			return invalid("target", "lane: needs a key")
		}
		err = validKey("lane", t.Name)
	default:
		return invalid("target", "%q is none of queue:NAME, job:NAME, lane:KEY", t.String())
	}
	if field, ok := errors.AsType[*FieldError](err); ok {
		return invalid("target", "%s", field.Msg)
	}
	return err
}

// Limit sets how many tasks of a target may run at the same time, and how often they may start, over all workers. At least one of
// the two is set.
type Limit struct {
	Target
	Running int           // tasks that may run at the same time; 0 for no limit. Not for lanes, which run one task at a time
	Rate    int           // starts per Per; 0 for no limit
	Per     time.Duration // in whole milliseconds
	Burst   int           // starts at once after a time without any
}

// Bounds of a Limit's fields.
const (
	MaxRate = 1_000_000
	MinPer  = time.Millisecond
)

// Validate returns the first error in the limit, as a *FieldError.
func (l Limit) Validate() error {
	if err := l.Target.Validate(); err != nil {
		return err
	}
	switch {
	case l.Running < 0 || l.Running > math.MaxInt32:
		return invalid("running", "%d is out of range (1 or more)", l.Running)
	case l.Running > 0 && l.Kind == LaneTarget:
		return invalid("running", "a lane runs one task at a time")
	case l.Running == 0 && l.Rate == 0:
		return invalid("rate", "a limit needs running or rate")
	case l.Rate < 0 || l.Rate > MaxRate:
		return invalid("rate", "%d is out of range (1 to %d)", l.Rate, MaxRate)
	case l.Rate == 0 && (l.Per != 0 || l.Burst != 0):
		return invalid("burst", "needs rate")
	case l.Rate > 0 && (l.Per < MinPer || l.Per > MaxDelay || l.Per%time.Millisecond != 0):
		return invalid("per", "%v is out of range (1 ms to 10 years, in whole milliseconds)", l.Per)
	case l.Rate > 0 && (l.Burst < 1 || l.Burst > MaxRate):
		return invalid("burst", "%d is out of range (1 to %d)", l.Burst, MaxRate)
	}
	return nil
}

// Bucket is the state of a rate limit (a token bucket). A start takes Per milliseconds from Level, and each millisecond that passes adds
// Rate to it. So all values are integers. Level is negative after a start that the rate did not allow yet.
type Bucket struct {
	Level int64
	At    time.Time
}

// Full returns the bucket of a limit that has not been used for a long time.
func (l Limit) Full(now time.Time) Bucket { return Bucket{int64(l.Burst) * l.Per.Milliseconds(), now} }

// Fill returns the bucket at the time now. If the clock was set back, Level stays as it is.
func (l Limit) Fill(b Bucket, now time.Time) Bucket {
	full := l.Full(now)
	if gone := now.UnixMilli() - b.At.UnixMilli(); gone > 0 {
		if need := full.Level - b.Level; gone > need/int64(max(l.Rate, 1)) { // the product could overflow
			b.Level = full.Level
		} else {
			b.Level += gone * int64(l.Rate)
		}
	}
	return Bucket{min(b.Level, full.Level), now}
}

// Starts returns how many tasks the rate allows to start at now. If there are none, next is the time of the next start.
func (l Limit) Starts(b Bucket, now time.Time) (n int, next time.Time) {
	if l.Rate == 0 {
		return math.MaxInt, time.Time{}
	}
	per, rate := l.Per.Milliseconds(), int64(l.Rate)
	b = l.Fill(b, now)
	if b.Level >= per {
		return int(b.Level / per), time.Time{}
	}
	return 0, now.Truncate(time.Millisecond).Add(time.Duration((per-b.Level+rate-1)/rate) * time.Millisecond)
}

// Take returns the bucket after n starts at now.
func (l Limit) Take(b Bucket, n int, now time.Time) Bucket {
	b = l.Fill(b, now)
	b.Level -= int64(n) * l.Per.Milliseconds()
	return b
}

// Carry returns the bucket of a limit that replaces the limit old. It has as many starts left as the old bucket. So setting a
// limit again and again does not allow more starts.
func (l Limit) Carry(old Limit, b Bucket, now time.Time) Bucket {
	if old.Rate == 0 {
		return l.Full(now)
	}
	left := float64(old.Fill(b, now).Level) / float64(old.Per.Milliseconds())
	return Bucket{int64(min(left, float64(l.Burst)) * float64(l.Per.Milliseconds())), now}
}

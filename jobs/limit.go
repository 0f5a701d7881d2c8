package jobs

import (
	"math"
	"strings"
	"time"
)

// Target is what a limit holds for: a queue, a job or a lane.
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

// String is the target as people write it: queue:media.
func (t Target) String() string { return t.Kind + ":" + t.Name }

// ParseTarget reads queue:NAME, job:NAME or lane:KEY.
func ParseTarget(text string) (Target, error) {
	kind, name, found := strings.Cut(text, ":")
	if !found {
		return Target{}, invalid("target", "%q is none of queue:NAME, job:NAME, lane:KEY", text)
	}
	t := Target{Kind: kind, Name: name}
	return t, t.Validate()
}

// Validate returns an error of field target.
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
	if field, ok := err.(*FieldError); ok {
		return invalid("target", "%s", field.Msg)
	}
	return err
}

// Limit says how many tasks of a target may run at once, and how often they may start, over all workers. One of both at least.
type Limit struct {
	Target
	Running int           // at most so many at once; 0: any number. Not for lanes: they run one at a time
	Rate    int           // so many starts per Per; 0: any number
	Per     time.Duration // whole milliseconds
	Burst   int           // so many starts at once after a quiet time
}

// The limits of a Limit.
const (
	MaxRate = 1_000_000
	MinPer  = time.Millisecond
)

// Validate returns the first thing that is wrong with the limit: a *FieldError.
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

// Bucket is what is left of a rate at a moment. A start costs Per milliseconds, and each millisecond gives Rate of them back: so
// everything is a whole number. Below 0 a start is owed.
type Bucket struct {
	Level int64
	At    time.Time
}

// Full is the bucket of a limit that nobody has used for long.
func (l Limit) Full(now time.Time) Bucket { return Bucket{int64(l.Burst) * l.Per.Milliseconds(), now} }

// Fill returns the bucket as it is at now. A clock that was set back gives nothing, and costs nothing.
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

// Starts says how many tasks the rate lets start at now. If none, next is when the first may.
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

// Carry returns the bucket of a limit that replaces another: it has as many starts left, so that setting a limit again and
// again gives none away.
func (l Limit) Carry(old Limit, b Bucket, now time.Time) Bucket {
	if old.Rate == 0 {
		return l.Full(now)
	}
	left := float64(old.Fill(b, now).Level) / float64(old.Per.Milliseconds())
	return Bucket{int64(min(left, float64(l.Burst)) * float64(l.Per.Milliseconds())), now}
}

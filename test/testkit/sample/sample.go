// Package sample has sample values of task options, for tests that check every
// option.
package sample

import (
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Set sets an option to a value that isn't its default. If the option is a
// path, the value is dir.
func Set(o *taskspec.OptionInfo, s *jobs.Spec, dir string) {
	switch o.Key {
	case "unique_for", "unique_states":
		s.UniqueKey = "a key" // these options are valid only in a task with a unique key
	}

	switch to := o.Field(s).(type) {
	case *taskspec.Text:
		switch {
		case o.Words != nil:
			*to = taskspec.Text(o.Words[0])
		case o.Key == "retry_on":
			*to = "75,100-111"
			s.MaxAttempts = 2
		case o.Key == "event":
			*to = "failed"
		case o.Key == "queue":
			*to = "media"
		case o.Key == "user":
			*to = "nobody"
		case o.Key == "ionice":
			*to = "best-effort:6"
		case o.Key == "cpu":
			*to = "150%"
		case o.Commands:
			*to = taskspec.Text(dir)
		default:
			*to = `-a "key" of 'mine', é`
		}
	case *taskspec.Number:
		*to = taskspec.Number(max(o.Min, -100)) + 7
	case *taskspec.Size:
		*to = taskspec.Size(max(o.Min, 5000))
	case *taskspec.Duration:
		*to = taskspec.Duration(90*time.Minute + 250*time.Millisecond)
	case *taskspec.Moment:
		*to = taskspec.Moment(time.Now().Add(1000*time.Hour + time.Millisecond).Truncate(time.Millisecond))
	case *taskspec.IDs:
		*to = []int64{1, 2}
	case *taskspec.Texts:
		*to = map[string]string{"SAMPLE_A": "s3 cret", "SAMPLE_B": "", "SAMPLE_C": "a=b,c"}
	case *taskspec.Data:
		*to = []byte("line\n")
	case *taskspec.Flag:
		*to = true
	case *taskspec.States:
		*to = []jobs.State{jobs.Completed, jobs.Failed}
	default:
		panic(fmt.Sprintf("sample: the option %s has the type %T", o.Key, to))
	}
	if o.IsDefault(s) {
		panic("sample: the sample of " + o.Key + " is its default")
	}
}

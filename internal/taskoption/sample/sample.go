// Package sample has sample values of task options, for tests that check every option.
package sample

import (
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Set sets an option to a value that is not its default. If the option is a path, the value is dir.
func Set(o *taskspec.OptionInfo, s *jobs.Spec, dir string) {
	switch o.Key {
	case "unique_for", "unique_states", "unique_period":
		s.UniqueKey = "a key" // these three options are valid only in a task with a unique key
	}
	switch to := o.Field(s).(type) {
	case *string:
		switch {
		case o.Words != nil:
			*to = o.Words[0]
		case o.Key == "event":
			*to = "failed"
		case o.Key == "queue":
			*to = "media"
		case o.Key == "user":
			*to = "nobody"
		case o.Key == "unique_states":
			*to = "completed,failed"
		case o.Key == "ionice":
			*to = "best-effort:6"
		case o.Key == "cpu":
			*to = "150%"
		case o.Commands:
			*to = dir
		default:
			*to = `-a "key" of 'mine', é`
		}
	case *jobs.Codes:
		*to = "75,100-111"
		s.MaxAttempts = 2
	case *int:
		*to = int(max(o.Min, -100)) + 7
	case *int64:
		*to = max(o.Min, 5000)
	case *time.Duration:
		*to = 90*time.Minute + 250*time.Millisecond
	case *time.Time:
		*to = time.Now().Add(1000*time.Hour + time.Millisecond).Truncate(time.Millisecond)
	case *[]int64:
		*to = []int64{1, 2}
	case *map[string]string:
		*to = map[string]string{"SAMPLE_A": "s3 cret", "SAMPLE_B": "", "SAMPLE_C": "a=b,c"}
	case *[]byte:
		*to = []byte("line\n")
	case *bool:
		*to = true
	default:
		panic(fmt.Sprintf("sample: the option %s has the type %T", o.Key, to))
	}
	if o.IsDefault(s) {
		panic("sample: the sample of " + o.Key + " is its default")
	}
}

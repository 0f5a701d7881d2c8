package engine

import (
	"testing"
	"time"
)

func TestNegativeTimesKeepForever(t *testing.T) {
	at := time.Now()
	for _, test := range []struct {
		options      Options
		keep, failed time.Duration // expected retention times; 0 means for ever
	}{
		{Options{Keep: 7 * 24 * time.Hour, KeepFailed: 30 * 24 * time.Hour}, 7 * 24 * time.Hour, 30 * 24 * time.Hour},
		{Options{Keep: time.Hour, KeepFailed: -1}, time.Hour, 0},
		{Options{Keep: -1, KeepFailed: 2 * time.Hour}, 0, 2 * time.Hour},
	} {
		p := test.options.prune(at, time.Time{})
		for _, age := range []struct {
			before time.Time
			want   time.Duration
		}{{p.Before, test.keep}, {p.FailedBefore, test.failed}} {
			if age.before.IsZero() != (age.want == 0) || age.want != 0 && !age.before.Equal(at.Add(-age.want)) {
				t.Errorf("%+v: got tasks deleted that ended before %v, want %v before now (0: none)", test.options, age.before, age.want)
			}
		}
	}
}

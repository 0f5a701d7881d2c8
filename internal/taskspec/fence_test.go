package taskspec

import (
	"errors"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestOwnedNeedsRunningGenerationAndNoCancelRequest(t *testing.T) {
	requested := time.Now()
	for _, state := range AllStates() {
		for generation := int64(6); generation <= 8; generation++ {
			for _, cancel := range []time.Time{{}, requested} {
				err := CheckOwner(jobs.Task{ID: 1, State: state, GenerationID: 7, CancelRequestedAt: cancel}, generation)
				var want error
				switch {
				case state != jobs.Running || generation != 7:
					want = jobs.ErrLost
				case !cancel.IsZero():
					want = jobs.ErrCancelled
				}
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s, generation %d of 7, cancel requested: %v: got error %v, want %v", state, generation,
						!cancel.IsZero(), err, want)
				}
			}
		}
	}
}

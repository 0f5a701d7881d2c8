package jobs

import (
	"errors"
	"testing"
	"time"
)

func TestOwnedNeedsTheRunningGenerationAndNoCancelRequest(t *testing.T) {
	requested := time.Now()
	for _, state := range States() {
		for generation := int64(6); generation <= 8; generation++ {
			for _, cancel := range []time.Time{{}, requested} {
				err := Task{ID: 1, State: state, GenerationID: 7, CancelRequestedAt: cancel}.Owned(generation)
				var want error
				switch {
				case state != Running || generation != 7:
					want = ErrLost
				case !cancel.IsZero():
					want = ErrCancelled
				}
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s, generation %d of 7, cancel requested: %v: got error %v, want %v", state, generation, !cancel.IsZero(), err, want)
				}
			}
		}
	}
}

package runner_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/runner/jobs"
)

func TestIndexMetadataRejectsInvalidKeys(t *testing.T) {
	r, remove := temp()
	defer remove()
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint("k", i)
	}
	for _, keys := range [][]string{{""}, {"tenant", "a=b"}, {"$.a"}, many} {
		if err := r.IndexMetadata(t.Context(), keys...); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("keys %q: got error %v, want %v", keys, err, jobs.ErrInvalid)
		}
	}
	for _, keys := range [][]string{many[:32], {"k0", "k0"}, nil} {
		if err := r.IndexMetadata(t.Context(), keys...); err != nil {
			t.Errorf("keys %q: got error %v, want none", keys, err)
		}
	}
}

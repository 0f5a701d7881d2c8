package runner

import (
	"slices"
	"testing"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// BenchmarkWatch measures one read of a Watch of 10,000 tasks of which none has
// changed.
func BenchmarkWatch(b *testing.B) {
	r, err := Open(b.Context(), b.TempDir()+"/bench.db", Options{Sync: SyncNormal})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	specs := slices.Repeat([]jobs.Spec{work.With("x")}, maxWatched)
	if _, err := r.EnqueueSeq(b.Context(), slices.Values(specs)); err != nil {
		b.Fatal(err)
	}

	w := watch{r: r, seen: map[int64]db.Version{}, visit: func(jobs.Task) bool { return true }}
	if _, err := w.look(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := w.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

package sqlite

import (
	"errors"
	"testing"

	"example.com/runner/jobs"
)

// TestErrorOfCopyNamesFileThatUserKnows: a copy without room or rights
// lacks them where the database is, and damage comes from the backup.
func TestErrorOfCopyNamesFileThatUserKnows(t *testing.T) {
	d := &File{path: "/data/q.db"}
	for kind, want := range map[error]string{
		jobs.ErrFull: "/data/q.db", jobs.ErrPermission: "/data/q.db",
		jobs.ErrCorrupt: "backup.db", jobs.ErrSchema: "backup.db", jobs.ErrReplaced: "backup.db",
	} {
		part := "/data/.q.db.x.part"
		err := d.aboutCopy(&jobs.Error{Kind: kind, What: "problem: " + part}, part, "backup.db")
		e, ok := errors.AsType[*jobs.Error](err)
		if !ok || e.What != "problem: "+want {
			t.Errorf("%v: got error %v, want one that names %s", kind, err, want)
		}
	}
}

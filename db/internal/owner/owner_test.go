package owner

import (
	"io/fs"
	"testing"
)

// TestExposedForEveryOwnerAndMode tries every combination of owner, group, mode
// and user of the worker. In this test, uid 0 is root, uid 7 is the worker's
// user, and uid 9 is another user.
func TestExposedForEveryOwnerAndMode(t *testing.T) {
	named := func(uid, gid int) bool { return uid == gid }
	for _, me := range []int{0, 7} {
		for _, uid := range []int{0, 7, 9} {
			for _, gid := range []int{0, 7, 9} {
				for bits := range fs.FileMode(0o1000) {
					why, try := exposed(bits, uid, gid, me, named)
					safe := (uid == me || uid == 0) && bits&0o002 == 0 && (bits&0o020 == 0 || uid == gid)
					if (why == "") != safe || (try == "") != safe {
						t.Fatalf("mode %v, owner %d:%d, worker's user %d: got reason %q and hint %q, want both: %v",
							bits, uid, gid, me, why, try, !safe)
					}
				}
			}
		}
	}

	if why, _ := exposed(0o777|fs.ModeSticky|fs.ModeDir, 0, 0, 7, named); why == "" {
		t.Error("mode 1777: got no reason, want one, because the sticky bit does not protect the file")
	}
}

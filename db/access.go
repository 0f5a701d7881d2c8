package db

import (
	"os"

	"example.com/runner/db/internal/owner"
)

// Insecure returns an error of kind jobs.ErrPermission if a user other than
// root and the user with the number uid has write access to the files of the
// database. User uid runs the worker, and anyone who can write the files can
// make the worker run commands as this user. Insecure doesn't open the
// database, and accepts one that doesn't exist yet. It returns nil for a
// database on a server, which checks the rights of its users itself.
func Insecure(address string, uid int) error { return ParseAddress(address).CheckWriters(uid) }

// FileOwner returns the number of the user who owns the database at path. ok is
// false if there is no such file, or if the system has no owners.
func FileOwner(path string) (uid int, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	uid, _, ok = owner.Of(info)
	return uid, ok
}

// CurrentUser returns the name of the user who runs this process, or the number
// if the system doesn't know it.
func CurrentUser() string { return owner.Current() }

// UserName returns the name of user uid, or the number if the system doesn't
// know it.
func UserName(uid int) string { return owner.UserName(uid) }

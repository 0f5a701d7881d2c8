package db

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"example.com/runner/db/internal/owner"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// Insecure returns an error of kind jobs.ErrPermission if a user other than root and the user of this process has write access to the
// database at path. See InsecureFor.
func Insecure(path string) error { return InsecureFor(path, os.Geteuid()) }

// InsecureFor returns an error of kind jobs.ErrPermission if another user has write access to the database at path, to its directory, or to
// the directory PATH.d beside it. Other users are all users except root and the user with the number uid, who runs the worker. Write access
// to any of these is command execution as this user. InsecureFor opens nothing, and accepts files that do not exist yet. On systems without
// owners and modes it returns nil.
func InsecureFor(path string, uid int) error {
	path, err := sqlite.Resolve(path)
	if err != nil {
		return err
	}
	for _, name := range []string{filepath.Dir(path), path, path + ".d"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // Open later reports this error
		}
		ownerID, gid, ok := owner.Of(info)
		if !ok {
			continue
		}
		if why, try := exposed(info.Mode(), ownerID, gid, uid, sameName); why != "" {
			hint := try + " " + name
			if info.IsDir() && info.Mode()&fs.ModeSticky != 0 { // a directory with the sticky bit is meant for several users, as /tmp is
				hint = "a database in a directory of your own"
			}
			return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.ExposedDatabase, Subject: name, What: name + " " + why,
				Why: []string{"whoever may write the database may run commands as the worker's user"}, Hint: hint}
		}
	}
	return nil
}

// FileOwner returns the number of the user who owns the database at path. The result ok is false if the file does not exist, or if the
// system does not report owners.
func FileOwner(path string) (uid int, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	uid, _, ok = owner.Of(info)
	return uid, ok
}

// exposed returns the reason why a file or directory is not safe for a worker that runs as user me. The file belongs to user uid and
// group gid. exposed also returns the command that makes the file safe. Both results are empty if it is safe. A group with the name of
// the owner counts as private, since many systems create such a group for each user. The sticky bit does not make a directory safe. It
// prevents other users from removing the database, but they can still create a file with the name of its write-ahead log.
func exposed(mode fs.FileMode, uid, gid, me int, named func(uid, gid int) bool) (why, try string) {
	switch {
	case uid != 0 && uid != me:
		return "belongs to " + UserName(uid), "chown " + UserName(me)
	case mode.Perm()&0o002 != 0:
		return "may be written by everyone", "chmod o-w"
	case mode.Perm()&0o020 != 0 && !named(uid, gid):
		return "may be written by group " + groupText(gid), "chmod g-w"
	}
	return "", ""
}

// sameName reports whether a group has the name of a user. It compares the numbers if the system does not know one of the names.
func sameName(uid, gid int) bool {
	u, errUser := user.LookupId(strconv.Itoa(uid))
	g, errGroup := user.LookupGroupId(strconv.Itoa(gid))
	if errUser != nil || errGroup != nil {
		return uid == gid
	}
	return u.Username == g.Name
}

// UserName returns the name of the user with the number uid, or the number if the system does not know it.
func UserName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func groupText(gid int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return g.Name
	}
	return strconv.Itoa(gid)
}

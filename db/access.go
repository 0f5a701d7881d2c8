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

// Insecure returns a problem of kind jobs.ErrPermission when somebody else than this process's user, or root, may write the
// database at path, its directory or the directory beside it: whoever writes there may run commands as this user. It opens
// nothing; what does not exist yet is fine. On systems without owners and modes it is nil.
func Insecure(path string) error {
	path, err := sqlite.Resolve(path)
	if err != nil {
		return err
	}
	for _, name := range []string{filepath.Dir(path), path, path + ".d"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // told by whoever opens it
		}
		uid, gid, ok := owner.Of(info)
		if !ok {
			continue
		}
		if why, try := exposed(info.Mode(), uid, gid, os.Geteuid(), sameName); why != "" {
			return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.ExposedDatabase, Subject: name, What: name + " " + why,
				Why:  []string{"whoever may write the database may run commands as the worker's user"},
				Hint: try + " " + name}
		}
	}
	return nil
}

// exposed says why a file or directory of owner uid and group gid is not safe for a worker of user me, and what would help; empty: it
// is. A group that has the owner's name is theirs alone, as many systems set it up. The sticky bit does not help: it keeps others
// from removing the file, and not from making one with the name of its log.
func exposed(mode fs.FileMode, uid, gid, me int, named func(uid, gid int) bool) (why, try string) {
	switch {
	case uid != 0 && uid != me:
		return "belongs to " + userText(uid), "chown " + userText(me)
	case mode.Perm()&0o002 != 0:
		return "may be written by everyone", "chmod o-w"
	case mode.Perm()&0o020 != 0 && !named(uid, gid):
		return "may be written by group " + groupText(gid), "chmod g-w"
	}
	return "", ""
}

// sameName says whether a group has the name of a user. Of those that the system has no name for the numbers count.
func sameName(uid, gid int) bool {
	u, errUser := user.LookupId(strconv.Itoa(uid))
	g, errGroup := user.LookupGroupId(strconv.Itoa(gid))
	if errUser != nil || errGroup != nil {
		return uid == gid
	}
	return u.Username == g.Name
}

func userText(uid int) string {
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

// Package owner tells which user owns a file, and whether other users may write it.
package owner

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
)

// UserName returns the name of the user with the number uid, or the number if the system does not know it.
func UserName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// Current returns the name of the user who runs this process, or the number if
// the system doesn't know it.
func Current() string {
	if os.Getuid() == 0 {
		return "root"
	}
	if name := os.Getenv("USER"); name != "" { // quicker than a search in the user database
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// Exposed returns the reason why a file or directory is not safe for a process. The parameter "me" is the number of the user of the
// process. Exposed also returns the command that makes the file safe. Both results are empty if the file is safe, or if the system does not
// report owners. The parameter "mode" is the mode of the file. A caller can clear bits in it that Exposed must ignore.
func Exposed(info fs.FileInfo, mode fs.FileMode, me int) (why, try string) {
	uid, gid, ok := Of(info)
	if !ok {
		return "", ""
	}
	return exposed(mode, uid, gid, me, sameName)
}

// exposed does the work of Exposed for a file of user uid and group gid. A group with the name of the owner counts as private, since many
// systems create such a group for each user. The parameter "named" is a function that reports whether a group has the name of a user. The
// sticky bit does not make a directory safe. It prevents other users from removing a database, but they can still create a file with the
// name of its write-ahead log.
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

// groupText returns the name of a group, or its number if the system does not know it.
func groupText(gid int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return g.Name
	}
	return strconv.Itoa(gid)
}

// Package owner tells which user owns a file, and whether other users may write
// it.
package owner

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"sync"
)

// UserName returns the name of the user uid, or the number if the system
// doesn't know it.
func UserName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// Current returns the name of the user who runs this process, or the number if
// the system doesn't know it. It asks only once, because each enqueue calls it.
var Current = sync.OnceValue(func() string {
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
})

// Exposed returns why a file or directory isn't safe for a process of the user
// me, and the command that makes it safe. Both are empty if it's safe, or if
// the system doesn't report owners. mode is that of the file; a caller can
// clear bits in it.
func Exposed(info fs.FileInfo, mode fs.FileMode, me int) (why, try string) {
	uid, gid, ok := Of(info)
	if !ok {
		return "", ""
	}
	return exposed(mode, uid, gid, me, sameName)
}

// exposed does the work of Exposed for a file of user uid and group gid. A
// group with the name of the owner (isNamed) counts as private, since many
// systems create one for each user. The sticky bit doesn't make a directory
// safe: others can't remove a database then, but they can create a file with
// the name of its WAL.
func exposed(mode fs.FileMode, uid, gid, me int, isNamed func(uid, gid int) bool) (why, try string) {
	switch {
	case uid != 0 && uid != me:
		return "belongs to " + UserName(uid), "chown " + UserName(me)
	case mode.Perm()&0o002 != 0:
		return "may be written by everyone", "chmod o-w"
	case mode.Perm()&0o020 != 0 && !isNamed(uid, gid):
		return "may be written by group " + groupText(gid), "chmod g-w"
	}
	return "", ""
}

// sameName reports whether a group has the name of a user. It compares the
// numbers if the system doesn't know one of the names.
func sameName(uid, gid int) bool {
	u, errUser := user.LookupId(strconv.Itoa(uid))
	g, errGroup := user.LookupGroupId(strconv.Itoa(gid))
	if errUser != nil || errGroup != nil {
		return uid == gid
	}
	return u.Username == g.Name
}

func groupText(gid int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return g.Name
	}
	return strconv.Itoa(gid)
}

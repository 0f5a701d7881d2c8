package owner

import "io/fs"

// Of returns false, because file modes on Windows don't contain the owner.
func Of(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

// NoFollow is 0, because Windows has no such flag.
const NoFollow = 0

// NoBlock is 0, because Windows has no such flag.
const NoBlock = 0

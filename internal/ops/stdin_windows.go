package ops

import "os"

// hungUp reports whether a pipe is empty and has no writer. Windows doesn't
// tell without reading.
func hungUp(*os.File) bool { return false }

package follow

import (
	"fmt"
	"os"
	"path/filepath"
)

// socketAddress returns an address of the socket that is valid until the caller calls release. Linux accepts at most 107 bytes as the
// address of a socket, but the path may be longer. The address of a long path contains a descriptor of the directory instead.
func socketAddress(dir, name string) (address string, release func(), err error) {
	if path := filepath.Join(dir, name); len(path) < 100 {
		return path, func() {}, nil
	}
	open, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", open.Fd(), name), func() { _ = open.Close() }, nil
}

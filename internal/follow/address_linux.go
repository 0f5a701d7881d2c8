package follow

import (
	"fmt"
	"os"
	"path/filepath"
)

// socketAddress returns an address of the socket, which is valid until release. The name of a socket has at most 107 bytes on Linux, and
// less than the path of a directory may have. So the address goes through the descriptor of the directory.
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

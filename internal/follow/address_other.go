//go:build !linux

package follow

import "path/filepath"

// socketAddress returns the path of the socket, which is its address. If the path is too long for a socket, Listen will return an error.
func socketAddress(dir, name string) (address string, release func(), err error) {
	return filepath.Join(dir, name), func() {}, nil
}

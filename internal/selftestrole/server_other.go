//go:build !unix

package selftestrole

import (
	"context"

	"example.com/runner/internal/selftest"
)

// OnOwnServer returns an error: on this system the selftest cannot start a server.
func OnOwnServer(context.Context, *selftest.Options) (stop func(), err error) {
	return nil, selftest.ErrUnsupported
}

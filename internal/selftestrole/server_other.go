//go:build !unix

package selftestrole

import (
	"context"

	"example.com/runner/internal/selftest"
)

func OnOwnServer(context.Context, *selftest.Options) (stop func(), err error) {
	return nil, selftest.ErrUnsupported
}

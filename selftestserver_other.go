//go:build !unix

package main

import (
	"context"

	"example.com/runner/internal/selftest"
)

func onOwnServer(context.Context, *selftest.Options) (stop func(), err error) {
	return nil, selftest.ErrUnsupported
}

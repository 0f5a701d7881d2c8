//go:build !unix

package main

import (
	"context"

	"example.com/runner/internal/torture"
)

func onOwnServer(context.Context, *torture.Options) (stop func(), err error) {
	return nil, torture.ErrUnsupported
}

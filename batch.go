package main

import (
	"context"

	"example.com/runner/runner"
)

func runBatch(ctx context.Context, r *runner.Runner, p *printer, o enqueueOptions) error {
	return usage("later")
}

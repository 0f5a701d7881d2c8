package testkit

import "os"

// Full says whether the tests run at full size, which RUNNER_TEST=full asks
// for. CI's steps race and postgres set it. Without it, go test ./... tries
// fewer cases and starts no PostgreSQL server, so it takes a minute or two.
func Full() bool { return os.Getenv("RUNNER_TEST") == "full" }

// Size returns small in the plain run and large in the full one.
func Size[V any](small, large V) V {
	if Full() {
		return large
	}
	return small
}

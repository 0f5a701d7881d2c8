//go:build race

package db

// usualStride: the race detector finds nothing in where a disk fails.
const usualStride = 37

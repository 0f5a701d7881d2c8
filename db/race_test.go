//go:build race

package db

// usualStride is the default of the flag stride: only every 37th operation fails in a test. That is enough for the race detector, because
// it finds the same races, whichever operation fails.
const usualStride = 37

//go:build race

package db

// usualStride is the default of the flag "stride": a test makes only every 37th operation on the disk fail. The race detector needs no more
// failures, because it finds the same races whichever operation fails.
const usualStride = 37

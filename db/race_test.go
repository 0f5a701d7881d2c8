//go:build race

package db

// usualStride is the default of the flag stride. With the race detector it is large, so that few operations fail: the detector finds the
// same races, whichever operation fails.
const usualStride = 37

//go:build race

package db

// usualStride is the default of the flag stride. It is large here, because the race detector finds the same races wherever the disk fails.
const usualStride = 37

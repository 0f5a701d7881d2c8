//go:build race

package db

// usualStride is the default of the flag stride. It is large, because the point at which a disk fails makes no difference to the race
// detector.
const usualStride = 37

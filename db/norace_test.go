//go:build !race

package db

// usualStride is the default of the flag stride. With 5 the tests need half a minute of CPU time for some hundred points of failure. The
// command make failures tests all points.
const usualStride = 5

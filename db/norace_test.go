//go:build !race

package db

// usualStride tests some hundred points in half a minute of CPU time. make failures tests all points.
const usualStride = 5

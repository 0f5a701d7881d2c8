//go:build !race

package db

// usualStride is the default of the flag "stride": a test makes only every fifth operation on the disk fail. With this value the tests need
// half a minute of CPU time, and make some hundred operations fail. The command "make failures" sets the flag to 1, so that each operation
// fails once.
const usualStride = 5

//go:build !race

package db

// usualStride is the default of the flag "stride": only every fifth operation fails in a test. With 5 the tests need half a minute of CPU
// time, and make some hundred operations fail. The command "make failures" makes every operation fail.
const usualStride = 5

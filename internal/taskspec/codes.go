package taskspec

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/runner/jobs"
)

// HasCode reports whether a set contains an exit code. The empty set stands for all codes.
func HasCode(set jobs.Codes, code int) bool {
	if set == "" {
		return true
	}
	for part := range strings.SplitSeq(string(set), ",") {
		if low, high, err := codeRange(part); err == nil && low <= code && code <= high {
			return true
		}
	}
	return false
}

// validCodes checks a set of exit codes. The error names the first invalid part.
func validCodes(field, set string) error {
	if len(set) > MaxCodes {
		return invalid(field, "%d bytes; at most %d", len(set), MaxCodes)
	}
	for part := range strings.SplitSeq(set, ",") {
		if _, _, err := codeRange(part); set != "" && err != nil {
			return invalid(field, "%v", err)
		}
	}
	return nil
}

func codeRange(part string) (low, high int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	if !isRange {
		to = from
	}
	low64, errLow := strconv.ParseUint(from, 10, 16) // not Atoi, because Atoi accepts a sign
	high64, errHigh := strconv.ParseUint(to, 10, 16)
	low, high = int(low64), int(high64)
	if errLow != nil || errHigh != nil || low < 1 || high > 255 || low > high {
		return 0, 0, fmt.Errorf("invalid exit codes %q; use codes and ranges within 1-255, such as 75,100-111", part)
	}
	return low, high, nil
}

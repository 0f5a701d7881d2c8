package taskspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/jobs/command"
)

// HasCode reports whether a set contains an exit code. The empty set stands for
// all codes.
func HasCode(set command.Codes, code int) bool {
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

func validCodes(field, set string) error {
	if len(set) > MaxCodes {
		return invalid(field, "%d bytes; at most %d", len(set), MaxCodes)
	}
	for part := range strings.SplitSeq(set, ",") {
		if _, _, err := codeRange(part); err != nil {
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

// MinMemory is the smallest memory limit of a command. With less no program
// could start.
const MinMemory = 1 << 20

// maxCPU is the largest limit of processor time, in percent of one processor.
const maxCPU = 1_000_000

// validUser checks the form of a name or id. The worker later finds out whether
// the user exists.
func validUser(field, name string) error {
	if err := ValidKey(field, name); err != nil {
		return err
	}
	if strings.ContainsAny(name, ":/ ") {
		return invalid(field, "invalid user %q; use a name or an id, such as www-data or 1000", name)
	}
	return nil
}

// ioClasses lists the classes of I/O priorities by the numbers that Linux gives
// them.
var ioClasses = []string{"", "realtime", "best-effort", "idle"}

// ParseIONice parses an I/O priority: a class and a level. The level is 4 if
// the text doesn't contain one, and 0 for the class idle, which has none.
func ParseIONice(text string) (class, level int, ok bool) {
	name, number, hasLevel := strings.Cut(text, ":")
	class = slices.Index(ioClasses, name)
	switch {
	case class < 1 || name == "idle" && hasLevel:
		return 0, 0, false
	case name == "idle":
		return class, 0, true
	case !hasLevel:
		return class, 4, true
	case len(number) != 1 || number[0] < '0' || number[0] > '7':
		return 0, 0, false
	}

	return class, int(number[0] - '0'), true
}

func validIONice(field, text string) error {
	if _, _, ok := ParseIONice(text); !ok {
		return invalid(field, "invalid priority %q; use idle, best-effort, best-effort:0 to best-effort:7, or realtime:0 to realtime:7",
			text)
	}
	return nil
}

// ParseCPU returns a limit of processor time in percent of one processor.
func ParseCPU(text string) (percent int, ok bool) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 32) // not ParseInt, because ParseInt accepts a sign
	return int(n), ok && err == nil && 1 <= n && n <= maxCPU
}

func validCPU(field, text string) error {
	if _, ok := ParseCPU(text); !ok {
		return invalid(field, "invalid limit %q; use 50%% for half of one CPU, or 200%% for two CPUs (1%% to %d%%)", text, maxCPU)
	}
	return nil
}

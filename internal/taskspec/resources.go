package taskspec

import (
	"strconv"
	"strings"
)

// MinMemory is the smallest memory limit that a command can have. With less memory no program could start.
const MinMemory = 1 << 20

// maxCPU is the largest limit of processor time that a command can have, in percent of one processor.
const maxCPU = 1_000_000

// validUser checks whether a text can be the name or the id of a user. The worker later checks whether the user exists.
func validUser(field, name string) error {
	if err := validKey(field, name); err != nil {
		return err
	}
	if strings.ContainsAny(name, ":/ ") {
		return invalid(field, "invalid user %q; use a name or an id, such as www-data or 1000", name)
	}
	return nil
}

// IOClass is a class of I/O priorities, as in the command ionice.
type IOClass int

// These are the classes of I/O priorities, with the numbers that Linux gives them.
const (
	IORealtime IOClass = iota + 1
	IOBestEffort
	IOIdle
)

// ParseIONice parses an I/O priority: a class and a level. The level is 4 if the text does not contain one.
func ParseIONice(text string) (class IOClass, level int, ok bool) {
	name, number, hasLevel := strings.Cut(text, ":")
	switch name {
	case "idle":
		return IOIdle, 0, !hasLevel
	case "best-effort":
		class = IOBestEffort
	case "realtime":
		class = IORealtime
	default:
		return 0, 0, false
	}
	if !hasLevel {
		return class, 4, true
	}
	if len(number) != 1 || number[0] < '0' || number[0] > '7' {
		return 0, 0, false
	}
	return class, int(number[0] - '0'), true
}

func validIONice(field, text string) error {
	if _, _, ok := ParseIONice(text); text != "" && !ok {
		return invalid(field, "invalid priority %q; use idle, best-effort, best-effort:0 to best-effort:7, or realtime:0 to realtime:7",
			text)
	}
	return nil
}

// ParseCPU parses a limit of processor time, and returns it in percent of one processor.
func ParseCPU(text string) (percent int, ok bool) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 32) // not ParseInt, because ParseInt accepts a sign
	return int(n), ok && err == nil && 1 <= n && n <= maxCPU
}

func validCPU(field, text string) error {
	if _, ok := ParseCPU(text); text != "" && !ok {
		return invalid(field, "invalid limit %q; use 50%% for half of one CPU, or 200%% for two CPUs (1%% to %d%%)", text, maxCPU)
	}
	return nil
}

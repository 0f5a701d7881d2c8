package cli

import (
	"errors"
	"fmt"
	"strconv"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/runner/admin"
)

// The errors of these parsers leave out the option and the typed text, which
// the caller adds.

var ErrName = errors.New("invalid variable; use NAME or NAME=VALUE")

// ParseID parses one task id.
func ParseID(text string) (int64, error) {
	ids, err := taskspec.ParseIDs(text)
	if err == nil && len(ids) > 1 {
		err = errors.New("is more than one task id")
	}
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func ParseInt(text string, low int) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("out of range")
	case err != nil:
		return 0, errors.New("invalid whole number")
	case int(n) < low:
		return 0, fmt.Errorf("too small; use %d or more", low)
	}

	return int(n), nil
}

// These functions check names.
var (
	ParseQueue = named(taskspec.ValidQueue, "invalid queue name; use "+nameForm+" -")
	ParseJob   = named(taskspec.ValidJob, "invalid job name; use "+nameForm+" - : /")
	ParseLane  = named(func(key string) error {
		return db.ValidateTarget(admin.Target{Kind: admin.LaneTarget, Name: key})
	}, "invalid lane; use 1 to 200 bytes of UTF-8 without control characters")
	ParseScheduleName = named(taskspec.ValidSchedule, "invalid schedule name; use "+nameForm+" -")
)

const nameForm = "a letter or digit, then at most 99 of A-Z a-z 0-9 . _"

// named returns a function that returns its argument, or an error if it isn't
// valid.
func named(valid func(string) error, invalid string) func(string) (string, error) {
	return func(text string) (string, error) {
		if valid(text) != nil {
			return "", errors.New(invalid)
		}
		return text, nil
	}
}

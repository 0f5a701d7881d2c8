package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The functions below parse values of options. Their errors do not contain the option and the typed text, because the caller adds them.

var (
	ErrName = errors.New("invalid variable; use NAME or NAME=VALUE")
	errSize = errors.New("invalid size; use 65536, 64KiB, 1MiB or 1GiB")
)

// ParseMetadata checks metadata of the form KEY=TEXT.
func ParseMetadata(text string) (string, error) {
	if key, _, ok := strings.Cut(text, "="); !ok || taskspec.ValidMetadataKey(key) != nil {
		return "", errors.New("invalid metadata; use KEY=TEXT, where KEY is a letter or digit, then at most 99 of A-Z a-z 0-9 . _ - : /")
	}
	return text, nil
}

// MetadataOf converts a list of KEY=TEXT to a map. If a key occurs twice, the last text counts.
func MetadataOf(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	metadata := make(map[string]string, len(list))
	for _, pair := range list {
		key, text, _ := strings.Cut(pair, "=")
		metadata[key] = text
	}
	return metadata
}

// parseSize parses a SIZE in bytes.
func parseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for shift, name := range map[int]string{10: "K", 20: "M", 30: "G"} {
		if rest, ok := strings.CutSuffix(strings.TrimSuffix(text, "iB"), name); ok { // K is KiB, as in systemd and docker
			number, unit = rest, 1<<shift
		}
	}
	if strings.Trim(number, "0123456789") != "" || number == "" {
		return 0, errSize
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errors.New("too large")
	}
	return n * unit, nil
}

// parseCodes parses the value of an option for exit codes: exit codes and ranges of them.
func parseCodes(text string) (jobs.Codes, error) {
	if text == "" {
		return "", errors.New("empty; use 75,100-111")
	}
	return jobs.Codes(text), taskspec.ValidCodes(jobs.Codes(text))
}

// ParseIDs parses one task id, or several that are separated by commas.
func ParseIDs(text string) ([]int64, error) {
	var ids []int64
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id < 1 || word[0] == '+' {
			return nil, errors.New("invalid task id; use 41 or 41,42")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// ParseID parses one task id.
func ParseID(text string) (int64, error) {
	ids, err := ParseIDs(text)
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
		return taskspec.ValidateTarget(jobs.Target{Kind: jobs.LaneTarget, Name: key})
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

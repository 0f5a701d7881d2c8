package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Note says in a word or two what is special about a task: the column NOTE of lists.
func Note(t jobs.Task, g Gates, now time.Time) string {
	if held := g.note(t); held != "" {
		return held
	}
	switch t.State {
	case jobs.Scheduled, jobs.Retrying:
		if !t.RunAt.After(now) {
			return "due" // no worker has looked yet
		}
		return "in " + humanize.Age(humanize.Soon(t.RunAt.Sub(now)))
	case jobs.Blocked:
		return blockedBy(t)
	case jobs.Running:
		if !t.CancelRequestedAt.IsZero() {
			return "stopping"
		}
		return progress(t.Progress)
	case jobs.Cancelled:
		switch by, ok := strings.CutPrefix(t.Error, "cancelled by "); {
		case t.Reason == jobs.ReasonExpired:
			return "expired"
		case t.Reason == jobs.ReasonDependency:
			return strings.TrimPrefix(t.Error, "task ")
		case ok && t.Reason == jobs.ReasonCancelled:
			by, _, _ = strings.Cut(by, ": ")
			return "by " + by
		}
		return ""
	}
	if t.Reason == jobs.ReasonLost {
		return fmt.Sprintf("lost %d", t.Losses)
	}
	return Ending(t.Reason, t.ExitCode, t.Signal)
}

// blockedBy says in a word or two what a blocked task waits for: after 1036, or its lane.
func blockedBy(t jobs.Task) string {
	waits := slices.Concat(t.After, t.AfterAny)
	switch {
	case len(waits) == 1:
		return fmt.Sprintf("after %d", waits[0])
	case len(waits) > 1:
		return fmt.Sprintf("after %d +%d", waits[0], len(waits)-1)
	}
	return "lane " + t.Lane
}

// Ending says in a word or two how an attempt ended otherwise than well: exit 22, signal 9, not found, timeout.
func Ending(reason jobs.Reason, exitCode *int, signal int) string {
	switch {
	case reason == jobs.ReasonExit && exitCode != nil:
		return fmt.Sprintf("exit %d", *exitCode)
	case reason == jobs.ReasonSignal:
		return fmt.Sprintf("signal %d", signal)
	case reason == jobs.ReasonStart && exitCode != nil && *exitCode == 127:
		return "not found"
	case reason == jobs.ReasonStart:
		return "not started"
	}
	return string(reason)
}

// progress is what a function reports, in short: 12/40, or its text.
func progress(report json.RawMessage) string {
	var p struct {
		Done, Total json.Number
		Text        string
	}
	if json.Unmarshal(report, &p) != nil {
		return ""
	}
	if p.Done != "" && p.Total != "" {
		return p.Done.String() + "/" + p.Total.String()
	}
	return cmp.Or(cut(p.Text, 12), p.Done.String())
}

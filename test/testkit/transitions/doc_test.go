package transitions

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// meanings holds the description of each state in docs/states.md.
var meanings = map[jobs.State]string{
	jobs.Scheduled: "waits for its start time",
	jobs.Pending:   "may start now",
	jobs.Blocked:   "waits for another task, for its lane, or until somebody resumes it",
	jobs.Running:   "an attempt is in progress",
	jobs.Retrying:  "an attempt failed; the next one is due later",
	jobs.Completed: "finished: the command exited with 0, or the function returned no error",
	jobs.Failed:    "finished: the last attempt failed, and no retry follows",
	jobs.Cancelled: "finished: stopped on request, expired, or its dependency failed",
}

const statesHead = `<!-- Generated from test/testkit/transitions. To update it: UPDATE_DOCS=1 go test ./test/testkit/transitions -->

# States

A task is in one of eight states. The first five are *unfinished*, the last three *finished*. You can use both words wherever you
can name a state, as in ` + "`runner list -s unfinished`" + `. The table lists all transitions, each with the action that makes it:

| state | meaning | transitions (*action*: next states) |
|---|---|---|
`

const statesTail = `
A new task is pending, or scheduled if its start time is in the future. It is blocked from the start if it names tasks that it waits for, if
another task holds its lane, or if it was enqueued with ` + "`--paused`" + `. The transition *free* ends the state blocked.

Every transition adds one to the ` + "`generation_id`" + ` of the task. The database rejects a write that names an older generation. When a
worker takes over a running task from a hung worker, it adds one to the ` + "`generation_id`" + ` twice: once before it kills the
processes of the task, and once when it *returns* the task.

* *return* ends an attempt that was lost with its worker, or that its worker interrupted in order to stop. The task returns to its queue.
* *snooze* ends an attempt of a function that asks to be called again later.
* *pause* is ` + "`runner pause`" + `. A paused task stays blocked until ` + "`runner resume`" + `. If nothing else blocks the task then,
  the task makes the transition *free*, to pending or scheduled. A paused task gives up its lane. The tasks that it waits for can end while
  it is paused.
* *edit* is ` + "`runner edit`" + ` or ` + "`enqueue --unique-mode replace`" + `. Most edits change no state.
  An edit of the due time or of the lane can change the state.

Only ` + "`internal/taskspec/next.go`" + ` decides which state follows from the end of an attempt.
`

// TestStatesAreDocumented compares docs/states.md with the list of transitions.
func TestStatesAreDocumented(t *testing.T) {
	var text strings.Builder
	text.WriteString(statesHead)
	for _, from := range taskspec.AllStates() {
		var verbs []string
		to := map[string][]string{}
		for _, m := range moves {
			if m.From != from {
				continue
			}
			if !slices.Contains(verbs, m.By) {
				verbs = append(verbs, m.By)
			}
			to[m.By] = append(to[m.By], string(m.To))
		}
		for i, verb := range verbs {
			verbs[i] = "*" + verb + "*: " + strings.Join(to[verb], ", ")
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", from, meanings[from], strings.Join(verbs, "; "))
	}
	text.WriteString(statesTail)

	const path = "../../../docs/states.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text.String() {
		t.Errorf("%s (error %v) differs from the transitions; to update it: UPDATE_DOCS=1 go test ./test/testkit/transitions",
			path, err)
	}
}

package jobs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// meanings are the words of docs/states.md beside the moves.
var meanings = map[State]string{
	Scheduled: "waits for its start time",
	Pending:   "may start now",
	Blocked:   "waits for another task, or for its lane",
	Running:   "an attempt is in progress",
	Retrying:  "an attempt failed, the next is due later",
	Completed: "finished: exit 0, or no error",
	Failed:    "finished: no attempt or loss left",
	Cancelled: "finished: stopped on request, expired, or its dependency failed",
}

const statesHead = `<!-- Made from jobs/state.go. To write it anew: UPDATE_DOCS=1 go test ./jobs -->

# States

A task is in one of eight states. The first five are *unfinished*, the last three *finished*; both words may be used wherever
a state may, as in ` + "`runner list -s unfinished`" + `. These are all moves there are, each with the verb that makes it:

| from | means | leaves to |
|---|---|---|
`

const statesTail = `
A new task is pending, or scheduled when its start time lies ahead. Every move adds one to the task's ` + "`generation_id`" + `,
and a writer that names an older one is refused. A worker that takes a running task from a hung one adds one, too, before it kills
and *releases* it. *release* is the end of an attempt that was lost with its worker, or cut off
by the worker's stop. *snooze* is for functions. *replace* is ` + "`enqueue --unique-mode replace`" + `. A task that names others to
wait for is blocked from the start, as is one whose lane another task has; *free* lets it go on.
What follows from the end of an attempt is decided in ` + "`jobs/next.go`" + ` alone.
`

// TestStatesAreDocumented compares docs/states.md with the moves.
func TestStatesAreDocumented(t *testing.T) {
	var text strings.Builder
	text.WriteString(statesHead)
	for _, from := range states {
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

	const path = "../docs/states.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != text.String() {
		t.Errorf("%s does not say what state.go does (%v): UPDATE_DOCS=1 go test ./jobs", path, err)
	}
}

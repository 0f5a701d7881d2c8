package await

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// NoteDependencies prints which tasks a new task waits for, or that the task was cancelled because a dependency has failed. It prints only
// to a terminal.
func NoteDependencies(ctx context.Context, r *runner.Runner, p *term.Printer, id int64) error {
	t, err := r.Get(ctx, id)
	switch {
	case err != nil:
		return err
	case t.Reason == jobs.ReasonDependency:
		p.Note("cancelled: %s", t.Error)
	case len(t.After) > 0:
		p.Note("cannot run before %s", joined(t.After)+map[bool]string{true: " completes", false: " complete"}[len(t.After) == 1])
	case len(t.AfterAny) > 0:
		p.Note("cannot run before %s", joined(t.AfterAny)+map[bool]string{true: " ends", false: " end"}[len(t.AfterAny) == 1])
	}
	return nil
}

// joined returns a list of ids as text, with at most 5 ids.
func joined(ids []int64) string {
	text := ""
	for i, id := range ids {
		if i == 5 {
			return text + fmt.Sprintf(" and %d more", len(ids)-i)
		}
		text += ", " + strconv.FormatInt(id, 10)
	}
	return strings.TrimPrefix(text, ", ")
}

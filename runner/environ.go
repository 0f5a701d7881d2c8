package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Variables of the worker that its commands do not get: its own settings, what service managers tell it alone, and what a task
// tells of itself that not every task has, if the worker runs inside one.
var hidden = []string{"RUNNER_CONCURRENCY", "RUNNER_QUEUE", "RUNNER_UNTIL_EMPTY", "RUNNER_GRACE", "RUNNER_TIMEOUT", "RUNNER_LEASE",
	"RUNNER_MAX_WAIT", "RUNNER_TEE", "RUNNER_ON_FAILURE", "RUNNER_KEEP", "RUNNER_KEEP_FAILED", "RUNNER_SERVE", "RUNNER_NAME",
	"RUNNER_LOG_FORMAT", "RUNNER_LOG_LEVEL", "RUNNER_INSECURE_PERMS", "RUNNER_LISTEN", "RUNNER_OPEN", "RUNNER_READ_ONLY",
	"RUNNER_BASE_PATH", "RUNNER_PUBLIC_URL", "RUNNER_AUTH", "RUNNER_TOKEN_FILE", "RUNNER_HIDE_ARGS", "RUNNER_INSECURE",
	"RUNNER_UPSTREAM", "RUNNER_TASK_SCHEDULE", "NOTIFY_SOCKET", "JOURNAL_STREAM", "INVOCATION_ID", "STATE_DIRECTORY"}

var hiddenPrefixes = []string{"WATCHDOG_", "LISTEN_"}

// commandEnviron is what of a worker's environment its commands inherit.
func commandEnviron(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(hidden, name) ||
			slices.ContainsFunc(hiddenPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

const maxEnvFile = 1 << 20 // bytes of an environment file

// environ is the whole environment of the command: the worker's, then the file's, the task's, and ours, which win. It stops reading the
// file when ctx ends.
func (c *command) environ(ctx context.Context) ([]string, error) {
	environ := slices.Clone(c.e.environ)
	if c.task.EnvFile != "" {
		text, err := readTaskFile(ctx, c.task.EnvFile, maxEnvFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.task.EnvFile, reasonOf(err))
		}
		variables, err := parseEnvFile(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.task.EnvFile, err)
		}
		environ = append(environ, variables...)
	}
	for name, value := range c.task.Env {
		environ = append(environ, name+"="+value)
	}
	due := c.task.RunAt
	if !c.task.Tick.IsZero() {
		due = c.task.Tick
	}
	environ = append(environ,
		"RUNNER_DB="+c.e.r.store.Address(),
		"RUNNER_TASK_ID="+strconv.FormatInt(c.task.ID, 10),
		"RUNNER_TASK_ATTEMPT="+strconv.Itoa(c.task.Attempt),
		"RUNNER_TASK_GENERATION="+strconv.FormatInt(c.task.GenerationID, 10),
		"RUNNER_TASK_QUEUE="+c.task.Queue,
		"RUNNER_TASK_DUE="+due.UTC().Format(time.RFC3339Nano),
		"RUNNER_WORKER_ID="+c.task.WorkerID,
		"RUNNER_RESULT="+c.resultPath())
	if c.task.Depends {
		environ = append(environ, "RUNNER_UPSTREAM="+c.upstreamPath())
	}
	if c.task.Schedule != "" {
		environ = append(environ, "RUNNER_TASK_SCHEDULE="+c.task.Schedule)
	}
	return lastWins(environ), nil
}

// lastWins keeps the last setting of each variable: what a program sees of two is its own choice.
func lastWins(environ []string) []string {
	seen := make(map[string]bool, len(environ))
	kept := make([]string, 0, len(environ))
	for _, variable := range slices.Backward(environ) {
		name, _, _ := strings.Cut(variable, "=")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, variable)
		}
	}
	slices.Reverse(kept)
	return kept
}

// parseEnvFile reads lines NAME=VALUE, values literal; empty lines and those that start with # are passed over.
func parseEnvFile(text string) ([]string, error) {
	var variables []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		name, _, found := strings.Cut(line, "=")
		if !found || name == "" || strings.ContainsAny(name, " \t\x00") || strings.IndexByte(line, 0) >= 0 {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", n) // the line itself may be a secret
		}
		variables = append(variables, line)
	}
	return variables, nil
}

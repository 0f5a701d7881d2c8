package exec

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/supervisor"
)

// hidden lists the variables of the worker that its commands do not inherit.
// These are the settings of the worker and the variables that a service manager
// sets for the worker alone. The list also has variables that runner sets for
// some tasks only, because the worker may itself run inside such a task.
var hidden = []string{"RUNNER_CONCURRENCY", "RUNNER_QUEUE", "RUNNER_UNTIL_EMPTY", "RUNNER_GRACE", "RUNNER_TIMEOUT", "RUNNER_LEASE",
	"RUNNER_SYNC", "RUNNER_WRITE_EVERY",
	"RUNNER_OUTPUT_LIMIT",
	"RUNNER_LEAVE_CHILDREN", "RUNNER_TEE", "RUNNER_ON_FAILURE",
	"RUNNER_ON_SUCCESS", "RUNNER_ON_RECOVERY", "RUNNER_ON_OUTPUT", "RUNNER_KEEP", "RUNNER_KEEP_FAILED", "RUNNER_SERVE", "RUNNER_NAME",
	"RUNNER_LOG_FORMAT", "RUNNER_LOG_LEVEL", "RUNNER_INSECURE_PERMS", "RUNNER_LISTEN", "RUNNER_OPEN", "RUNNER_READ_ONLY",
	"RUNNER_BASE_PATH", "RUNNER_PRINT_TOKEN", "RUNNER_PUBLIC_URL", "RUNNER_AUTH", "RUNNER_TOKEN_FILE", "RUNNER_HIDE_ARGS",
	"RUNNER_INSECURE", "RUNNER_UPSTREAM", "RUNNER_TASK_SCHEDULE", "NOTIFY_SOCKET", "JOURNAL_STREAM", "INVOCATION_ID", "STATE_DIRECTORY"}

// hiddenPrefixes are the prefixes of further variables that commands do not
// inherit.
var hiddenPrefixes = []string{"WATCHDOG_", "LISTEN_", "RUNNER_EVENT"}

// Environ returns the part of a worker's environment that its commands inherit.
func Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(hidden, name) ||
			slices.ContainsFunc(hiddenPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

const maxEnvFile = 1 << 20 // greatest size of an environment file, in bytes

// environ returns the whole environment of the command. The sources are the
// worker, the environment file, the task and runner itself; a later source
// overrides the earlier ones. environ stops reading the file when ctx ends.
func (c *Command) environ(ctx context.Context) ([]string, error) {
	environ := slices.Concat(c.Worker.Environ, c.account.environ())
	if c.Task.EnvFile != "" {
		text, err := readTaskFile(ctx, c.Task.EnvFile, maxEnvFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Task.EnvFile, humanize.Reason(err))
		}
		variables, err := parseEnvFile(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Task.EnvFile, err)
		}
		environ = append(environ, variables...)
	}

	for name, value := range c.Task.Env {
		environ = append(environ, name+"="+value)
	}

	due := c.Task.RunAt
	if !c.Task.Tick.IsZero() {
		due = c.Task.Tick
	}

	environ = append(environ, supervisor.Mark{Worker: c.Task.WorkerID, Key: c.key()}.Environ()...)
	environ = append(environ,
		"RUNNER_DB="+c.Worker.Store.Address(),
		"RUNNER_TASK_ATTEMPT="+strconv.Itoa(c.Task.Attempt),
		"RUNNER_TASK_QUEUE="+c.Task.Queue,
		"RUNNER_TASK_DUE="+due.UTC().Format(time.RFC3339Nano),
		"RUNNER_RESULT="+c.resultPath())
	if page := c.eventPage(); page != "" {
		environ = append(environ, "RUNNER_EVENT_URL="+page)
	}
	if c.Task.Depends {
		environ = append(environ, "RUNNER_UPSTREAM="+c.upstreamPath())
	}
	if c.Task.Schedule != "" {
		environ = append(environ, "RUNNER_TASK_SCHEDULE="+c.Task.Schedule)
	}

	return lastWins(environ), nil
}

// eventPage returns the URL of the page of the task or of the schedule that a
// hook is about. It is empty for a task that is no hook.
func (c *Command) eventPage() string {
	if c.PagesURL == "" || c.Task.Event == "" {
		return ""
	}
	page := strings.TrimRight(c.PagesURL, "/")
	if id := c.Task.Env["RUNNER_EVENT_TASK"]; id != "" {
		return page + "/tasks/" + id
	}
	return page + "/schedules/" + url.PathEscape(c.Task.Env["RUNNER_EVENT_SCHEDULE"])
}

// lastWins keeps only the last value of each variable. If a variable occurred
// twice, some programs would use the first value and others the last value.
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

// parseEnvFile reads lines of the form NAME=VALUE with literal values. It skips
// empty lines and lines that start with #.
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
			// the error does not contain the line, because the line may contain
			// a secret
			return nil, fmt.Errorf("line %d is not NAME=VALUE", n)
		}

		variables = append(variables, line)
	}

	return variables, nil
}

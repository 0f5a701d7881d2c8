//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// canary enqueues an ordinary task that must complete in time. It also checks
// the canaries that it has enqueued before.
func (f *rowFuzz) canary() {
	out, err := f.command("enqueue", "-q", "canary", "--", "true").CombinedOutput()
	id, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || id == 0 {
		f.Fatalf("enqueue: got error %v and %q, want an id", err, out)
	}
	f.canaries = append(f.canaries, canary{id, time.Now()})
	for len(f.canaries) > 0 && f.completed(f.canaries[0]) {
		f.canaries = f.canaries[1:]
	}
}

// flags runs runner enqueue with random options that have extreme values. It
// leaves out options that would make enqueue itself read a file that never
// ends.
func (f *rowFuzz) flags() {
	options := []string{"--queue", "--priority", "--in", "--at", "--expires-in", "--after", "--after-any", "--lane", "--unique", "--label",
		"--cwd", "--env", "--env-file", "--timeout",
		"--kill-after", "--max-attempts", "--backoff", "--backoff-delay", "--backoff-max", "--retry-on", "--max-losses", "--output-limit",
		"--args", "--input", "--batch"}
	words := []string{"enqueue", "--no-resolve"}
	for range 1 + f.values.IntN(3) {
		option := options[f.values.IntN(len(options))]
		value := strings.ReplaceAll(fmt.Sprint(f.values.from([][]any{extremeNumbers, extremeReals, extremeTexts(),
			f.values.files}[f.values.IntN(4)])), "\x00", "")
		waits := strings.HasSuffix(value, "fifo") || value == "/proc/kmsg"
		if waits && (option == "--input" || option == "--batch") || len(value) >= 128<<10 {
			continue // skip a value for which enqueue would wait for ever, or that is too long for an argument
		}
		words = append(words, option+"="+value)
	}
	ctx, stop := context.WithTimeout(f.Context(), time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, "runner", append(words, "--", "true")...)
	c.Dir, c.Env = f.dir, append(os.Environ(), "RUNNER_DB="+f.address, "HOME="+f.dir)
	out, err := c.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() < 1 || exit.ExitCode() > 3) ||
		bytes.Contains(out, []byte("panic")) {
		f.Errorf("runner %.300q: got error %v, want none or exit status 1 to 3: %.1000s", words, err, out)
	}
}

func (f *rowFuzz) completed(c canary) bool {
	task, err := f.r.Get(f.Context(), c.id)
	switch {
	case err != nil:
		f.Fatalf("canary %d: got error %v, want none", c.id, err)
	case task.State.Finished() && task.State != "completed":
		f.Errorf("canary %d: got %s %s %s, want completed", c.id, task.State, task.Reason, task.Error)
	case !task.State.Finished() && time.Since(c.from) > canaryWithin:
		shown, _ := f.command("show", strconv.FormatInt(c.id, 10)).CombinedOutput()
		running, _ := f.command("list", "--state", "running", "--json").CombinedOutput()
		f.Fatalf("canary %d: got %s after %v, want completed\n%s\n%s\n%s", c.id, task.State, time.Since(c.from), shown, running, f.log())
	}
	return task.State.Finished()
}

func (f *rowFuzz) awaitCanary() {
	c := f.canaries[0]
	ctx, stop := context.WithTimeout(f.Context(), canaryWithin)
	defer stop()
	if _, err := f.r.Await(ctx, c.id); ctx.Err() == nil && err != nil {
		f.Errorf("canary %d: got error %v, want none", c.id, err)
	}
	f.completed(c)
	f.canaries = f.canaries[1:]
}

// showAll runs all commands and requests all pages that show tasks.
func (f *rowFuzz) showAll() {
	f.views()
	last := strconv.FormatInt(f.newest(), 10)
	for _, args := range [][]string{{"list", "-n", "200"}, {"list", "-n", "200", "--json"}, {"list", "--since", "1h", "--json"}, {"status"},
		{"status", "--json"}, {"show", last},
		{"show", last, "--json"}, {"schedule", "list"}, {"schedule", "list", "--json"}, {"limit", "list"}, {"limit", "list", "--json"},
		{"logs", last}, {"doctor", "--json"}} {
		c := f.command(args...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		kill := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		out, err := c.Output()
		kill.Stop()
		words := strings.Join(args, " ")
		if err != nil && args[0] != "doctor" && !strings.Contains(stderr.String(), "no task") && !strings.Contains(stderr.String(),
			"has not started") {
			f.Errorf("runner %s: got error %v, want none: %.1000s", words, err, &stderr)
		}
		if slices.Contains(args, "--json") {
			for line := range bytes.Lines(out) {
				f.wantJSON(words, line)
			}
		}
	}
	for _, path := range []string{"/", "/tasks", "/tasks?q=state%3Afailed", "/schedules", "/metrics", "/tasks/" + last,
		"/tasks/" + last + "/log", "/api/v1/tasks/" + last, "/api/v1/tasks?format=csv"} {
		answer := f.page(path)
		for end := time.Now().Add(time.Minute); answer.Code == http.StatusServiceUnavailable && time.Now().Before(end); {
			answer = f.page(path) // a busy machine may take longer than a page waits for the database
		}
		if answer.Code >= 500 {
			f.Errorf("%s: got status %d, want less than 500: %.500s", path, answer.Code, answer.Body)
		}
	}
}

func (f *rowFuzz) page(path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	f.pages.ServeHTTP(answer, httptest.NewRequestWithContext(f.Context(), "GET", path, nil))
	return answer
}

// views reads all rows of the views, as other programs may do.
func (f *rowFuzz) views() {
	for _, view := range []string{"tasks_view", "attempts_view", "schedules_view"} {
		rows, err := f.raw.QueryContext(f.Context(), `SELECT * FROM `+view)
		if err != nil {
			f.Errorf("%s: got error %v, want none", view, err)
			continue
		}
		for rows.Next() { // Next makes the driver decode every value, so Scan is not necessary
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			f.Errorf("%s: got error %v, want none", view, err)
		}
	}
}

// newest returns the highest id among the tasks that are not in the queue
// canary.
func (f *rowFuzz) newest() (id int64) {
	if err := f.raw.QueryRowContext(f.Context(), `SELECT coalesce(max(id), 1) FROM tasks WHERE queue <> 'canary'`).Scan(&id); err != nil {
		f.Fatal(err)
	}
	return id
}

// wantJSON checks that a line is JSON in UTF-8, and that the times in it are in
// RFC 3339.
func (f *rowFuzz) wantJSON(words string, line []byte) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber() // keep all digits of long numbers
	if err := decoder.Decode(&value); err != nil || !utf8.Valid(line) {
		f.Errorf("runner %s: got %.500q (%v), want JSON in UTF-8", words, line, err)
	}
	f.wantTimes(words, "", value)
}

func (f *rowFuzz) wantTimes(words, key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, value := range value {
			if key != "args" && key != "result" && key != "env" && key != "task" {
				f.wantTimes(words, key, value)
			}
		}
	case []any:
		for _, value := range value {
			f.wantTimes(words, key, value)
		}
	case string:
		if strings.HasSuffix(key, "_at") {
			if at, err := time.Parse(time.RFC3339, value); err != nil || len(value) < len("2026-01-31T15:04:05Z") || at.Year() > 9999 {
				f.Errorf("runner %s: got %s %q, want a time in RFC 3339 before the year 10000", words, key, value)
			}
		}
	}
}

// Package testkit contains helpers for tests. It imports no other package of
// this module, so that all packages can use it. Helpers that need a
// runner.Runner are in package runnerkit.
package testkit

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Patience is how long Eventually waits. Only a hang takes this long, also on a
// machine that is busy with other work.
const Patience = time.Minute

// Eventually calls done until it returns true, and ends the test after
// Patience.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	Within(t, Patience, what, done)
}

// Within calls done until it returns true, and ends the test after limit.
func Within(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// Equal fails the test if the two values aren't equal. For structs, the message
// names the fields that differ.
func Equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}

	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if g.Kind() != reflect.Struct || g.Type() != w.Type() {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
		return
	}

	for i := range g.NumField() {
		field := g.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %s: got %+v, want %+v", what, field.Name, a, b)
		}
	}

	if !t.Failed() { // no exported field differs, so an unexported field does
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// NoError ends the test if err isn't nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// ErrorIs fails the test if err doesn't wrap the error want, or if the text of
// err doesn't contain all given texts.
func ErrorIs(t testing.TB, err, want error, texts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want one that is %v", err, want)
		return
	}

	for _, text := range texts {
		if err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want one with %q", err, text)
		}
	}
}

// ErrorContains fails the test if err is nil, or if the text of err doesn't
// contain all given texts.
func ErrorContains(t testing.TB, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one with %q", texts)
		return
	}

	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error %q, want one with %q", err, text)
		}
	}
}

// Len ends the test if the list doesn't have n elements.
func Len[E any](t testing.TB, what string, list []E, n int) {
	t.Helper()
	if len(list) != n {
		t.Fatalf("%s: got %d, want %d: %+v", what, len(list), n, list)
	}
}

// Between fails the test if got is smaller than low or greater than high.
func Between[T cmp.Ordered](t testing.TB, what string, got, low, high T) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: got %v, want %v to %v", what, got, low, high)
	}
}

// Contains fails the test for each part that the text doesn't contain.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got a text without %q:\n%s", part, text)
		}
	}
}

// ContainsNone fails the test for each part that the text contains.
func ContainsNone(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("got a text with %q, want none:\n%s", part, text)
		}
	}
}

// Program returns the path of a program. If the program isn't installed, it
// skips the test. The script .ci/run installs all programs and doesn't accept
// skipped tests.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// StartWithLog starts a command and appends its stderr to a file. The command
// is killed when the test ends.
func StartWithLog(t testing.TB, command *exec.Cmd, path string) {
	t.Helper()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	NoError(t, err)
	defer log.Close()

	command.Stderr = log
	NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
}

// ReadFile returns the content of a file. It ends the test if it can't read the
// file.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// SetZone sets the local time zone until the test ends. The test must not run
// in parallel with other tests.
func SetZone(t testing.TB, name string) {
	t.Helper()
	zone, err := time.LoadLocation(name)
	NoError(t, err)
	old := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = old })
}

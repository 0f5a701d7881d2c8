package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// runs is a function that implements Tests.
type runs func() int

func (f runs) Run() int { return f() }

func TestNoOpenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db-wal")
	for _, test := range []struct {
		name  string
		code  int                 // result of the tests
		after func(file *os.File) // called by the tests, with a file that they have opened
		want  int
		text  string
	}{
		{"closed", 0, func(file *os.File) { file.Close() }, 0, ""},
		{"left open", 0, func(*os.File) {}, 1, "testkit: the tests left a file open: " + path + "\n"},
		{"closed a second later", 0, func(file *os.File) { time.AfterFunc(time.Second, func() { file.Close() }) }, 0, ""},
		{"left open by tests that fail", 2, func(*os.File) {}, 2, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			file, err := os.Create(filepath.Join(filepath.Dir(path), "other.db"))
			NoError(t, err)
			defer file.Close() // this file was open before the tests, so Run does not report it
			var leaked *os.File
			var report strings.Builder
			code := checkedTests{runs(func() int {
				leaked, err = os.Create(path)
				NoError(t, err)
				test.after(leaked)
				return test.code
			}), &report}.Run()
			leaked.Close()
			Equal(t, test.name+": result", code, test.want)
			Equal(t, test.name+": report", report.String(), test.text)
		})
	}
}

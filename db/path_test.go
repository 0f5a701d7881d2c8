package db

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPath opens databases with arbitrary file names, and checks that Open
// creates the named file and no other file.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"x.db", "a b", "?", "#", "%", "%41", "%00", "x.db?_pragma=journal_mode(delete)", "x?mode=memory", "x#y",
		"&", "=", ";", "file:x", "file::memory:",
		":memory:x", "\n", "\t", "'", `"`, "`", "$HOME", "~", "é", "\u202e", "\x01", "-wal", "-", "--", "x-journal", " x ", "x.", "..x",
		"x.db?mode=memory", "a&b=c;d", `a\b`, "*", strings.Repeat("y", 200)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || name == ".." || len(name) > 200 || strings.ContainsAny(name, "/\x00") ||
			!utf8.ValidString(name) || runtime.GOOS == "windows" {
			return // a file cannot have this name
		}
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		d, err := Open(t.Context(), path, Options{Create: true, Normal: true})
		if err != nil {
			t.Fatalf("open a new file %q: got error %v, want none", name, err)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || d.Path() != real {
			t.Errorf("%q: got path %q and error %v, want path %q", name, d.Path(), err, real)
		}
		if _, err := d.MaxTimestamp(t.Context()); err != nil {
			t.Errorf("read from %q: got error %v, want none", name, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if d, err = Open(t.Context(), path, Options{}); err != nil || d.Created() {
			t.Fatalf("open %q again: got error %v, or a new database; want the existing one", name, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		want := []string{name, name + ".d"}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("got files %q, want %q", names, want)
		}
	})
}

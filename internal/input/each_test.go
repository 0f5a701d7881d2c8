package input

import (
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// BenchmarkEachLine measures how long it takes to make and to check the Spec of
// a line of "enqueue --each".
func BenchmarkEachLine(b *testing.B) {
	template, err := NewEach([]string{"convert.sh", "{}", "{.}.mp4"}, "", false)
	testkit.NoError(b, err)
	each := Batch{lines: testLines(b, jobs.Command(command.Command{})), each: template}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := each.spec(line{text: []byte("films/2026/holiday in the mountains.mov")}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPlaceholdersAreThoseOfParallel compares the placeholders with the results
// of GNU parallel.
func TestPlaceholdersAreThoseOfParallel(t *testing.T) {
	for line, want := range map[string]string{
		"a b":          "a b|a b|a b|a b|.",
		"a.mov":        "a.mov|a|a.mov|a|.",
		"d.x/a.tar.gz": "d.x/a.tar.gz|d.x/a.tar|a.tar.gz|a.tar|d.x",
		"d.x/a":        "d.x/a|d.x/a|a|a|d.x",
		"/a":           "/a|/a|a|a|/",
		"//a":          "//a|//a|a|a|/",
		"a//b":         "a//b|a//b|b|b|a",
		"./b.":         "./b.|./b|b.|b|.",
		"a/":           "a/|a/|||.",
		"a/b/":         "a/b/|a/b/|||a",
		"/a//":         "/a//|/a//|||/",
		"/":            "/|/|||/",
		".bashrc":      ".bashrc||.bashrc||.",
		"{.}":          "{.}|{|{.}|{|.",
		"\xff\n.\xfe":  "\xff\n.\xfe|\xff\n|\xff\n.\xfe|\xff\n|.",
	} {
		c, err := NewEach([]string{"{}|{.}|{/}|{/.}|{//}"}, "", false)
		testkit.NoError(t, err)
		var s jobs.Spec
		if err := c.fill(&s, line); err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		argv, err := taskspec.Argv(s.Args)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Equal(t, line, argv[0], want)
	}
	for word, has := range map[string]bool{"": false, "{": false, "{}{}": true, "{{}}": true, "{#}": false, "x{/": false, "{/.}": true,
		"{ }": false} {
		testkit.Equal(t, "placeholder in "+word, hasPlaceholder(word), has)
	}
}

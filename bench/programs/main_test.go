package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestProgramsDoSame runs each program with each library. It leaves out asynq
// if there is no Redis.
func TestProgramsDoSame(t *testing.T) {
	names := libraries
	if _, err := exec.LookPath("redis-server"); err != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "asynq" })
	}
	if _, err := compare(t.Context(), sizes{mails: 20, photos: 8, readings: 8, outage: true}, names); err != nil {
		t.Fatal(err)
	}
}

func TestSmallestProgramsRunTheirJob(t *testing.T) {
	all, err := measureSmall(t.Context(), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		if f.rss == 0 || f.start <= 0 || f.binary < all[0].binary {
			t.Errorf("%s: got %+v, want figures", smallest[i], f)
		}
	}
}

// TestPageHasRowsOfProgram checks that the table in the docs has the column
// titles and row labels that this program prints.
func TestPageHasRowsOfProgram(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	_, published, _, err := splitPage(string(text))
	if err != nil {
		t.Fatal(err)
	}

	labels := func(table string) (list []string) {
		for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
			if i == 0 {
				list = append(list, line) // compare the whole first row, which has the names and versions of the libraries
			} else {
				list = append(list, strings.TrimSpace(strings.Split(line+"|", "|")[1]))
			}
		}
		return list
	}
	empty := map[string]*figures{}
	for _, name := range libraries {
		empty[name] = &figures{}
	}
	if got, want := labels(published), labels(table(empty, full)); !slices.Equal(got, want) {
		t.Errorf("%s: got labels %q, want %q; run bench/programs/run -write", page, got, want)
	}
}

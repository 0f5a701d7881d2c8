package dbtest_test

import (
	"flag"
	"os"
	"testing"

	"example.com/runner/db/dbtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked { // each check is a database and some thirty calls; -rapid.checks=3000 -rapid.steps=80 takes minutes
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	closeServer()
	os.Exit(code)
}

func TestStore(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.Open)
}

// All of it holds in a database of another program, too, whatever the names of its tables.
func TestStoreBesideAnotherProgram(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.OpenBeside)
}

package dbtest_test

import (
	"flag"
	"os"
	"testing"

	"example.com/runner/db/dbtest"
	"example.com/runner/internal/testkit/pgkit"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given { // a check opens a database and makes about 30 calls; -rapid.checks=3000 -rapid.steps=80 takes minutes
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	pgkit.CloseShared()
	os.Exit(code)
}

func TestStore(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.Open)
}

// TestStoreWithACursor runs the suite in a database that stores the ends of tasks for a cursor.
func TestStoreWithACursor(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.WithCursor(dbtest.Open))
}

// TestStoreBesideAnotherProgram runs the suite in the database of another program with tables of the same names.
func TestStoreBesideAnotherProgram(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.OpenBeside)
}

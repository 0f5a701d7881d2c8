package dbtest_test

import (
	"flag"
	"os"
	"testing"

	"example.com/runner/db/dbtest"
	"example.com/runner/test/testkit/pgkit"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given { // the default is 40 checks; these flags make a test of some minutes: -rapid.checks=3000 -rapid.steps=80
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

// TestStoreBesideAnotherProgram runs the suite in the database of another
// program that has tables with the same names as runner's. The database has a
// cursor, too, as runner.ConsumeFinished makes one, so it stores the end of
// each task in a list.
func TestStoreBesideAnotherProgram(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, dbtest.WithCursor(dbtest.OpenBeside))
}

package test

import (
	"log"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository, because they name
// files relative to the root.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

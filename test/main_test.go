package test

import (
	"log"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository: they name its files as a reader does.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

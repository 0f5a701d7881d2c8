package dbtest_test

import (
	"testing"

	"example.com/runner/db/dbtest"
)

func TestStore(t *testing.T) { dbtest.Run(t, dbtest.Open) }

package runnertest_test

import (
	"testing"

	"go.uber.org/goleak"

	"example.com/runner/test/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.NoOpenFiles(m)) }

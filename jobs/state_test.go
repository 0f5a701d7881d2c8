package jobs

import (
	"os"
	"testing"

	"example.com/runner/test/testkit"
)

func TestPackageDocNamesEveryState(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []State{Scheduled, Pending, Blocked, Running, Retrying, Completed, Failed, Cancelled} {
		testkit.Contains(t, string(doc), string(s))
	}
	testkit.Contains(t, string(doc), "claim", "finish", "due", "cancel", "retry", "snooze")
}

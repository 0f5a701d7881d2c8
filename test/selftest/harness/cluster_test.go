package harness

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
)

// TestPromotedStandbyHasEveryConfirmedCommit promotes two standbys one after
// the other. Each has the commits that the servers before it confirmed.
func TestPromotedStandbyHasEveryConfirmedCommit(t *testing.T) {
	testkit.NeedFull(t)
	c, err := startCluster(t.Context())
	if errors.Is(err, pgserver.ErrNone) {
		t.Skip(err)
	}
	testkit.NoError(t, err)
	defer c.close()
	_, err = query(c.server(), "CREATE TABLE notes (n INT)")
	testkit.NoError(t, err)
	for n := range 2 {
		testkit.Within(t, time.Minute, "the server has a synchronous standby", c.hasStandby)
		_, err := query(c.server(), fmt.Sprintf("INSERT INTO notes VALUES (%d)", n))
		testkit.NoError(t, err)
		old := c.socket()
		testkit.NoError(t, c.server().Crash())
		testkit.NoError(t, c.promote())
		testkit.Equal(t, "the standby has another socket", c.socket() != old, true)
		testkit.Equal(t, "the server may be replaced", c.hasStandby(), false)
		text, err := query(c.server(), "SELECT count(*) FROM notes")
		testkit.NoError(t, err)
		testkit.Equal(t, "commits", strings.TrimSpace(text), fmt.Sprint(n+1))
	}
}

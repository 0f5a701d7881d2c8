package web_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/transfer"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/web"
)

func TestOverviewSaysThatItsDatabaseWasMoved(t *testing.T) {
	r := open(t)
	to := filepath.Join(t.TempDir(), "new.db")
	there, err := runner.Open(t.Context(), to, runner.Options{})
	testkit.NoError(t, err)
	_, err = transfer.Move(t.Context(), db.Of(r), db.Of(there), time.Now(), nil)
	testkit.NoError(t, errors.Join(err, there.Close()))
	testkit.Contains(t, serveEmbedded(t, r, web.Options{}).page("/"), "this database was moved to "+to)
}

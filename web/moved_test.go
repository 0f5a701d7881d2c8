package web_test

import (
	"path/filepath"
	"testing"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/web"
)

func TestOverviewSaysThatItsDatabaseWasMoved(t *testing.T) {
	r := open(t)
	to := filepath.Join(t.TempDir(), "new.db")
	_, err := admin.Move(t.Context(), r, to, runner.Options{}, nil)
	testkit.NoError(t, err)
	testkit.Contains(t, serveEmbedded(t, r, web.Options{}).page("/"), "this database was moved to "+to)
}

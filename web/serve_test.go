package web_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestServeReturnsWhenItsContextHasEnded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	server, err := web.Listen(runnerkit.Open(t, runner.Options{}), web.ServerOptions{Listen: "unix:" + socket})
	testkit.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.NoError(t, server.Serve(ctx))
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("got error %v for the socket, want that it is removed", err)
	}
}

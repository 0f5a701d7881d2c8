package web_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/runner/test/testkit"
)

// browserFlags are flags of Chromium. They prevent every request that is not
// for the pages.
var browserFlags = []chromedp.ExecAllocatorOption{chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
	chromedp.NoDefaultBrowserCheck,
	chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update",
		true),
	chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
	chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")}

// chromium is the browser of all tests of the package. It starts with the first
// test that needs it.
var chromium struct {
	start  sync.Once
	dir    string
	tab    context.Context // the first tab; nil if Chromium is not installed
	cancel context.CancelFunc
	err    error
}

// startChromium starts the browser.
func startChromium() {
	c := &chromium
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if c.dir, c.err = os.MkdirTemp("", "chromium"); c.err != nil {
			return
		}
		flags := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(c.dir, "data")),
			chromedp.Env("TMPDIR=" + c.dir)}, browserFlags...)
		allocator, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
		tab, cancelTab := chromedp.NewContext(allocator)
		c.tab, c.cancel, c.err = tab, func() { cancelTab(); cancel() }, chromedp.Do(tab)
		return
	}
}

// withChromium runs tests and then ends the browser.
type withChromium struct{ tests testkit.Tests }

// Run runs the tests and ends the browser.
func (w withChromium) Run() int {
	code, c := w.tests.Run(), &chromium
	if c.cancel == nil {
		return code
	}
	c.cancel()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // the processes of Chromium write files until they end
		if err := os.RemoveAll(c.dir); err == nil {
			return code
		} else if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "cannot remove the directory of the browser:", err)
			return 1
		}
	}
}

// newTab opens a tab with cookies of its own. It skips the test without
// RUNNER_TEST=full, and if Chromium isn't installed.
func newTab(t testing.TB) context.Context {
	t.Helper()
	testkit.NeedFull(t)
	chromium.start.Do(startChromium)
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	if chromium.tab == nil {
		t.Skip("Chromium is not installed; use apt-get install chromium")
	}
	ctx, cancel := chromedp.NewContext(chromium.tab, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return ctx
}

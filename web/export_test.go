package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"
)

// SetReadTimeout sets the time limit for the database reads of a page.
func SetReadTimeout(d time.Duration) { readTimeout = d }

// KeepAlive is how often a stream of events has an event outside tests.
var KeepAlive = keepAliveInterval

// SetKeepAlive sets how often a stream of events has an event.
func SetKeepAlive(d time.Duration) { keepAliveInterval = d }

// SetDoubleClick sets the time between the clicks of a double click.
func SetDoubleClick(d time.Duration) { doubleClick = d }

// LookAt lets searches look at n tasks for the time of a test.
func LookAt(t *testing.T, n int) {
	before := [2]int{lookTasks, lookPlain}
	lookTasks, lookPlain = n, n
	t.Cleanup(func() { lookTasks, lookPlain = before[0], before[1] })
}

// HasCounts reports whether the pages of a Handler share a count of the queues.
func HasCounts(h http.Handler) bool { return len(h.(*handler).counts.current().values) > 0 }

// LateOverview returns the overview of a Handler as if the count of the queues
// had taken all the time of the page.
func LateOverview(h http.Handler) http.HandlerFunc {
	late := h.(*handler)
	return late.page("overview", func(ctx context.Context, req *http.Request) (view, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return late.overview(ctx, req)
	})
}

// BeginScrape keeps a Handler busy as a scrape of /metrics does, until end is
// called.
func BeginScrape(h http.Handler) (end func()) {
	scraping := h.(*handler).scraping
	scraping <- struct{}{}
	return func() { <-scraping }
}

// Actions returns the names of all actions.
func Actions() []string { return slices.Sorted(maps.Keys(actions)) }

package web_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// otherTimes matches the parts of a page whose times may be in another zone
// than the page: the tooltips of times, links, commands, and the times of
// schedules.
var otherTimes = regexp.MustCompile(`<time [^>]*>|href="[^"]*"|\d\dT[\d:.]+Z|every (day|Monday) at \d\d:\d\d|[\d:]+ (UTC|CES?T)`)

var timeOfDay = regexp.MustCompile(`\b\d\d:\d\d\b`)

// timesIn returns the times of day that a page shows in its zone.
func timesIn(body string) []string {
	return timeOfDay.FindAllString(otherTimes.ReplaceAllString(body, ""), -1)
}

// TestEveryTimeIsInZoneOfBrowser reads each page in two zones whose clocks
// differ by 12 hours, so every time must differ by 12 hours.
func TestEveryTimeIsInZoneOfBrowser(t *testing.T) {
	r := open(t)
	pages := sampleDatabase(t, r)
	retrying := shell(t, r, "exit 1", jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{Delay: time.Hour}))
	scheduled := shell(t, r, "true", jobs.In(time.Hour), jobs.ExpiresIn(2*time.Hour))
	stop := runnerkit.Work(t, r, web1)
	testkit.Eventually(t, "the task waits for its next attempt", func() bool { return state(t, r, retrying) == jobs.Retrying })
	stop()
	s := serve(t, r, webOptions)
	read := func(zone, path string) []string {
		t.Helper()
		s.get("/zone?zone=" + zone)
		if strings.Contains(path, "/log") {
			req := s.request("GET", path, nil)
			req.Header.Set("Accept", "text/x-fragment")
			_, body, _ := s.do(req)
			return timesIn(body)
		}
		return timesIn(s.page(path))
	}
	total := 0
	for name, path := range map[string]string{"overview": "/", "overview of a day": "/?range=24h", "overview of a week": "/?range=7d",
		"tasks": "/tasks", "failed": "/tasks?q=state:failed", "grouped": "/tasks?q=state:failed&sort=cause",
		"scheduled": "/tasks?q=state:scheduled&sort=due", "task": pages["task"], "function": pages["function"], "colours": pages["colours"],
		"chain": pages["chain"], "retrying task": fmt.Sprintf("/tasks/%d", retrying),
		"scheduled task": fmt.Sprintf("/tasks/%d", scheduled), "log": pages["task"] + "/log", "workers": "/workers?span=6h",
		"schedules": "/schedules", "schedule": "/schedules/backup", "paused schedule": "/schedules/report", "job": "/jobs?job=command",
		"label": "/jobs?label=webhook"} {
		var first, again, other []string
		testkit.Eventually(t, name+" shows the same times twice", func() bool {
			first, other, again = read("Asia/Tokyo", path), read("America/Sao_Paulo", path), read("Asia/Tokyo", path)
			return slices.Equal(first, again)
		})
		testkit.Equal(t, name+": number of times in another zone", len(other), len(first))
		for i := range min(len(first), len(other)) {
			at, err := time.Parse("15:04", first[i])
			testkit.NoError(t, err)
			if want := at.Add(12 * time.Hour).Format("15:04"); other[i] != want {
				t.Errorf("%s: got the time %s in both zones or by a wrong difference to %s, want %s", name, other[i], first[i], want)
			}
		}
		total += len(first)
	}
	if total < 100 {
		t.Errorf("got %d times on all pages, want at least 100", total)
	}
}

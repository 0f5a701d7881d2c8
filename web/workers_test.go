package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestPageOfWorkers(t *testing.T) {
	r := open(t)
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page("/workers"), "No worker ran in this time.")
	first := shell(t, r, "true", jobs.Label("good"))
	runnerkit.Drain(t, r, web1)
	bad := shell(t, r, "exit 3", jobs.Label("bad"), jobs.MaxAttempts(1))
	runnerkit.Drain(t, r, web1)
	text := s.page("/workers?span=1h")
	testkit.Contains(t, text, `<a href="/tasks?q=worker%3Aweb1%3A811" title="web1:811">web1:811</a>`,
		"1 run: 1 completed", "1 run: 1 failed", ">ended <time",
		fmt.Sprintf(`<a href="/tasks/%d"><title>task %[1]d good: completed, slot 1, `, first),
		fmt.Sprintf(`<td><a href="/tasks/%d">%[1]d bad</a></td>`, bad), "times in UTC")
	testkit.Equal(t, "chosen span", strings.Count(text, `<a href="/workers?span=1h" aria-current="true">`), 1)
	testkit.Contains(t, s.page("/workers?worker=web1:811"), `href="/workers?worker=web1%3A811&amp;span=6h"`, ">all workers</a>")
	testkit.Contains(t, s.page("/workers?worker=none"), "No worker with this name ran in this time.")
	testkit.Contains(t, s.page("/"), `href="/workers"`)
}

// TestOverviewShowsStateOfWorkers: a ready worker needs no chip.
func TestOverviewShowsStateOfWorkers(t *testing.T) {
	r := open(t)
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	for state, chip := range map[string]string{
		"ready":    "",
		"draining": ` <span class="chip warn">draining</span>`,
		"lost":     ` <span class="chip bad">lost</span>`,
	} {
		silent := 0
		if state == "lost" {
			silent = 3 // half leases, so that the worker is lost and still listed
		}
		write(t, r, `UPDATE workers SET ended_at = NULL, state = ?, beat_at = ? - lease * ? / 2`,
			strings.Replace(state, "lost", "ready", 1), time.Now().UnixMilli(), silent)
		testkit.Contains(t, s.page("/"), `title="web1:811">web1:811</a>`+chip+"</th>")
	}
}

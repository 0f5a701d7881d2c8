package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

var webOptions = web.ServerOptions{}

// sampleDatabase fills a database with typical tasks. It returns the paths of
// some pages; the key of each path describes its page.
func sampleDatabase(t testing.TB, r *runner.Runner) map[string]string {
	t.Helper()
	type email struct {
		To, Subject string
		ID          json.Number
	}
	send := jobs.Define[email]("email.send", jobs.MaxAttempts(1), jobs.Queue("mail"))
	thumb := jobs.DefineResult[string, map[string]any]("image.thumb", jobs.Queue("media"))
	r.Register(send.Handler(func(_ context.Context, e email) error {
		if e.To == "" {
			return errors.New("550 no such recipient: <nobody@example.com>")
		}
		return nil
	}))
	r.Register(thumb.Handler(func(_ context.Context, name string) (map[string]any, error) {
		return map[string]any{"file": name, "width": 320, "bytes": json.Number("9007199254740993")}, nil
	}))
	enqueue := func(spec jobs.Spec) {
		runnerkit.Enqueue(t, r, spec)
	}
	shell(t, r, "echo backing up /srv; echo 'sent 120 files, 84 MB'")
	shell(t, r, "printf 'connecting to example.com\\n\\033[1mGET\\033[0m /hook\\n\\033[33mslow answer\\033[0m\\n'; "+
		"echo 'curl: (22) The requested URL returned error: 503' >&2; exit 22", jobs.Label("webhook"))
	shell(t, r, "echo 'rsync: connection unexpectedly closed (0 bytes received so far)' >&2; exit 12", jobs.Priority(7))
	shell(t, r, "kill -9 $$", jobs.Queue("media"))
	enqueue(thumb.With("holiday.jpg"))
	enqueue(send.With(email{To: "ann@example.com", Subject: "Welcome", ID: "9007199254740993"}))
	enqueue(send.With(email{}))
	for i := range 24 {
		shell(t, r, fmt.Sprintf("echo page %d", i), jobs.Queue([]string{"default", "media", "mail"}[i%3]))
	}
	shell(t, r, "echo 'no route to host' >&2; exit 7", jobs.MaxAttempts(3))
	schedule := func(name, cron, zone, script string) {
		spec := jobs.Command(command.Shell(script))
		testkit.NoError(t, r.SetSchedule(context.Background(), jobs.Schedule{Name: name, Cron: cron, Zone: zone, Spec: spec}))
	}
	schedule("backup", "0 3 * * *", "Europe/Berlin", "tar -cf /dev/null /etc/hostname")
	schedule("feed", "*/5 * * * *", "UTC", "echo fetched 12 items")
	schedule("report", "0 6 * * MON", "Europe/Berlin", "echo 'no data' >&2; exit 1")
	for range 6 {
		for _, name := range []string{"backup", "feed", "report"} {
			if _, err := admin.RunSchedule(context.Background(), r, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	colours := shell(t, r, `for i in 0 1 2 3 4 5 6 7; do printf "\033[3${i}mcolour $i\033[0m \033[4${i}mon $i\033[0m\n"; done; exit 3`,
		jobs.Lane("acct-7"),
		jobs.Label("a-name-without-a-single-blank-that-is-longer-than-any-column-of-any-table-on-any-telephone-and-goes-on-for-a-while"))
	runnerkit.Drain(t, r, web1)
	testkit.NoError(t, admin.PauseSchedule(context.Background(), r, "report"))
	for i := range 18 {
		shell(t, r, fmt.Sprintf("ffmpeg -i clip%02d.mov -c:v libx264 -preset slow -crf 22 clip%02d.mp4", i, i), jobs.Queue("media"))
	}
	enqueue(jobs.Command(command.Shell("report.sh --days 7"), jobs.In(8*time.Hour), jobs.Label("nightly")))
	load := shell(t, r, "load.sh --day today", jobs.Queue("etl"))
	merge := shell(t, r, "merge.sh", jobs.Queue("etl"), jobs.DependsOn(load))
	shell(t, r, "mail.sh", jobs.Queue("etl"), jobs.DependsOn(merge), jobs.DependsOnAny(1, 2))
	part, _ := fan(t, r, 6)
	etl := admin.Target{Kind: admin.QueueTarget, Name: "etl"}
	for _, limit := range []admin.Limit{{Target: etl, Running: 2, Rate: 100, Per: time.Minute, Burst: 100}} {
		testkit.NoError(t, admin.SetLimit(context.Background(), r, limit))
	}
	testkit.NoError(t, admin.PauseQueues(context.Background(), r, []string{"media"}, admin.PauseOptions{Reason: "disk is full"}))
	page := func(id int64) string { return fmt.Sprintf("/tasks/%d", id) }
	return map[string]string{"task": page(2), "function": page(5), "colours": page(colours), "chain": page(merge), "fan": page(part)}
}

// largeDatabase fills a database with very many tasks and with the longest
// possible names. It returns the paths of some pages; the key of each path
// describes its page.
func largeDatabase(t testing.TB, r *runner.Runner) map[string]string {
	t.Helper()
	long := func(n, most int) string { // a name without a space
		return (fmt.Sprintf("name-%02d.", n) + strings.Repeat("abcdefghi.", most/10))[:most]
	}
	for n := range 40 {
		queue := long(n, 100)
		shell(t, r, "echo "+strings.Repeat("x", 3000)+" >&2; exit 1", jobs.Queue(queue), jobs.Label(long(n, 200)), jobs.Lane(long(n, 200)))
		if n < 3 {
			target := admin.Target{Kind: admin.QueueTarget, Name: queue}
			limit := admin.Limit{Target: target, Running: 1_000_000, Rate: 100_000, Per: 36 * time.Hour, Burst: 100_000}
			testkit.NoError(t, admin.SetLimit(context.Background(), r, limit))
			s := jobs.Schedule{Name: queue, Cron: "1,3,5,7,11,13,17,19,23,29,31,37 1,2,3,4,5,6,7 1-31 1-12 MON,TUE,WED",
				Zone: "America/Argentina/ComodRivadavia", Spec: jobs.Command(command.Shell("exit 1"), jobs.Label(queue))}
			testkit.NoError(t, r.SetSchedule(context.Background(), s))
			if _, err := admin.RunSchedule(context.Background(), r, queue); err != nil {
				t.Fatal(err)
			}
		}
	}
	wide := jobs.DefineResult[string, string]("wide." + long(0, 80))
	r.Register(wide.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
	function, err := r.Enqueue(context.Background(), wide.With(strings.Repeat("w", 5000)))
	testkit.NoError(t, err)
	runnerkit.Drain(t, r, web1)
	reason := admin.PauseOptions{Reason: strings.Repeat("because ", 100)}
	testkit.NoError(t, admin.PauseQueues(context.Background(), r, []string{long(7, 100)}, reason))
	ids := many(t, r, 100_000, func(n int) jobs.Spec { return jobs.Command(command.Shell("true"), jobs.Queue(long(n%40, 100))) })
	chain := shell(t, r, "true", jobs.DependsOn(ids[:1000]...))
	page := func(id int64) string { return fmt.Sprintf("/tasks/%d", id) }
	return map[string]string{"task": page(2), "function": page(function.ID), "chain": page(chain)}
}

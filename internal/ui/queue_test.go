package ui_test

import (
	"testing"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

func TestQueuesAndWorkersHaveProblems(t *testing.T) {
	worker := func(more func(*admin.Worker)) admin.Worker {
		w := admin.Worker{Name: "web1:811", Jobs: []string{"command"}, State: "ready"}
		more(&w)
		return w
	}
	command := worker(func(*admin.Worker) {})
	mail := worker(func(w *admin.Worker) { w.Queues = []jobs.QueueMax{{Name: "mail"}} })
	sender := worker(func(w *admin.Worker) { w.Jobs = []string{"email.send"} })
	lost := worker(func(w *admin.Worker) {
		w.Name, w.State, w.BeatAt, w.Running = "my web", "lost", noon.Add(-90*time.Second), []int64{7}
	})
	draining := worker(func(w *admin.Worker) { w.State = "draining" })
	queue := func(name string, states map[jobs.State]int, byJob map[string]int) admin.QueueStatus {
		return admin.QueueStatus{Name: name, Counts: states, Jobs: byJob}
	}
	waits := queue("mail", map[jobs.State]int{jobs.Pending: 3, jobs.Retrying: 1}, map[string]int{"command": 1, "email.send": 2})
	failed := admin.QueueStatus{Name: "media", Ended: map[jobs.State]int{jobs.Failed: 2, jobs.Completed: 9}, Failed: 1}
	again := admin.QueueStatus{Name: "media", Ended: map[jobs.State]int{jobs.Failed: 2, jobs.Completed: 9}} // the failed tasks were retried
	problem := func(code, message, try, about string) ui.Problem {
		return ui.Problem{Code: code, Message: message, Try: try, About: about}
	}
	for _, test := range []struct {
		queues  []admin.QueueStatus
		workers []admin.Worker
		want    []ui.Problem
	}{
		{nil, nil, nil},
		{[]admin.QueueStatus{waits}, nil, []ui.Problem{
			problem("no_worker", "no worker runs, and 4 tasks are unfinished", "runner work", "")}},
		{[]admin.QueueStatus{waits}, []admin.Worker{draining}, []ui.Problem{
			problem("no_worker", "no worker runs, and 4 tasks are unfinished", "runner work", "")}},
		{[]admin.QueueStatus{queue("a", map[jobs.State]int{jobs.Running: 1}, nil)}, []admin.Worker{lost}, []ui.Problem{
			problem("no_worker", "no worker runs, and 1 task is unfinished", "runner work", ""),
			problem("lost_worker", "worker my web has not been seen for 1m and holds 1 task", "runner list -s running --worker 'my web'",
				"my web")}},
		{[]admin.QueueStatus{queue("media", map[jobs.State]int{jobs.Pending: 118}, map[string]int{"command": 118})}, []admin.Worker{mail},
			[]ui.Problem{problem("no_queue", "no worker serves queue media, and 118 tasks wait", "runner work -q media", "media")}},
		{[]admin.QueueStatus{waits}, []admin.Worker{command}, []ui.Problem{
			problem("no_job", "no worker of queue mail has job email.send, and 2 tasks wait",
				"runner list -q mail -j email.send -s pending",
				"mail")}},
		{[]admin.QueueStatus{waits}, []admin.Worker{sender}, []ui.Problem{
			problem("no_job", "no worker of queue mail has job command, and 1 task waits", "runner work -q mail", "mail")}},
		{[]admin.QueueStatus{queue("mail", map[jobs.State]int{jobs.Pending: 2}, map[string]int{"archive": 1, "command": 1})},
			[]admin.Worker{sender}, []ui.Problem{
				problem("no_job", "no worker of queue mail has job archive, and 1 task waits",
					"runner list -q mail -j archive -s pending", "mail"),
				problem("no_job", "no worker of queue mail has job command, and 1 task waits", "runner work -q mail", "mail")}},
		{[]admin.QueueStatus{waits}, []admin.Worker{sender, mail}, nil},
		{[]admin.QueueStatus{again}, []admin.Worker{command}, nil},
		{[]admin.QueueStatus{failed}, []admin.Worker{command}, []ui.Problem{
			problem("failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media")}},
	} {
		s := ui.Status{Queues: test.queues, Workers: test.workers, Now: noon}
		s.FindProblems()
		got := s.Problems
		if got == nil || len(got) != len(test.want) {
			t.Errorf("got problems %+v, want %+v", got, test.want)
			continue
		}
		for i := range got {
			testkit.Equal(t, "problem", got[i], test.want[i])
		}
	}
}

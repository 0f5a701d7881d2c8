package runner

import (
	"testing"
	"time"

	"example.com/runner/jobs"
)

var noon = time.Date(2026, 1, 31, 13, 11, 15, 0, time.UTC)

func TestWhyATaskWaits(t *testing.T) {
	setZone(t)
	worker := func(name string, seen time.Duration, more func(*WorkerInfo)) WorkerInfo {
		w := WorkerInfo{ID: "id of " + name, Name: name, Slots: 4, Jobs: []string{"command"}, Lease: time.Minute, BeatAt: noon.Add(-seen)}
		if more != nil {
			more(&w)
		}
		return w
	}
	idle := worker("web1:811", time.Second, nil)
	busy := worker("web2:99", time.Second, func(w *WorkerInfo) { w.Running = []int64{1, 2, 3, 4} })
	lost := worker("web3:5", 90*time.Second, nil)
	draining := worker("web4:7", time.Second, func(w *WorkerInfo) { w.Draining = true })
	mail := worker("web5:8", time.Second, func(w *WorkerInfo) { w.Queues = []QueueMax{{Queue: "mail"}} })
	sender := worker("app", time.Second, func(w *WorkerInfo) { w.Jobs, w.Slots = []string{"email.send"}, 2 })

	pending := jobs.Task{State: jobs.Pending, Queue: "media", Job: "command", RunAt: noon.Add(-time.Minute)}
	email := pending
	email.Job = "email.send"
	scheduled := jobs.Task{State: jobs.Scheduled, Queue: "media", Job: "command", RunAt: noon.Add(8 * time.Hour)}
	due := scheduled
	due.RunAt = noon.Add(-time.Minute)
	tomorrow := scheduled
	tomorrow.RunAt = noon.Add(20 * time.Hour)
	retrying := jobs.Task{State: jobs.Retrying, UpdatedAt: noon.Add(220 * time.Millisecond), RunAt: noon.Add(48 * time.Second)}
	quick := jobs.Task{State: jobs.Retrying, UpdatedAt: noon, RunAt: noon.Add(300 * time.Millisecond)}
	running := jobs.Task{State: jobs.Running, Worker: "web1:811", WorkerID: idle.ID, StartedAt: noon.Add(-11 * time.Second), LeaseExpiresAt: noon.Add(time.Minute)}
	stopping := running
	stopping.CancelRequestedAt = noon.Add(-3 * time.Second)
	orphan := running
	orphan.Worker, orphan.WorkerID, orphan.LeaseExpiresAt = "web3:5", lost.ID, noon.Add(-30*time.Second)

	for _, test := range []struct {
		task    jobs.Task
		ahead   int
		workers []WorkerInfo
		want    string
	}{
		{jobs.Task{State: jobs.Completed}, 0, nil, ""},
		{scheduled, 0, nil, "runs at 22:11:15"},
		{tomorrow, 0, nil, "runs at 2026-02-01 10:11:15"},
		{due, 0, nil, "no worker runs"},
		{retrying, 0, nil, "waits for its next attempt at 14:12:03 (backoff 48s)"},
		{quick, 0, nil, "waits for its next attempt at 14:11:15 (backoff 300ms)"},
		{pending, 3, nil, "no worker runs"},
		{pending, 3, []WorkerInfo{lost}, "no worker runs"},
		{pending, 3, []WorkerInfo{lost, draining}, "no worker runs (web4:7: draining)"},
		{pending, 3, []WorkerInfo{mail}, "no worker serves queue media"},
		{email, 3, []WorkerInfo{mail, idle}, "no worker has job email.send"},
		{pending, 41, []WorkerInfo{mail, busy, sender, draining}, "behind 41 tasks, 4/4 slots busy"},
		{pending, 1, []WorkerInfo{busy, idle}, "behind 1 task, 4/8 slots busy"},
		{email, 1203, []WorkerInfo{busy, sender}, "behind 1,203 tasks, 0/2 slots busy"},
		{running, 0, []WorkerInfo{idle}, "running on web1:811 for 11s"},
		{stopping, 0, []WorkerInfo{idle}, "running on web1:811 for 11s, asked to stop 3s ago"},
		{orphan, 0, []WorkerInfo{lost}, "web3:5 is gone, and no worker runs that could take over"},
		{orphan, 0, []WorkerInfo{idle}, "web3:5 is gone; another worker will take over"},
	} {
		if got := why(test.task, test.ahead, 0, Gates{}, test.workers, noon); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// setZone makes the local zone the one of the samples.
func setZone(t *testing.T) {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = old })
}

func TestWhyAPausedTaskWaits(t *testing.T) {
	setZone(t)
	pending := jobs.Task{State: jobs.Pending, Queue: "media", Job: "command", RunAt: noon.Add(-time.Minute)}
	scheduled := pending
	scheduled.State, scheduled.RunAt = jobs.Scheduled, noon.Add(time.Hour)
	own := Pause{At: noon.Add(-20 * time.Minute), By: "ann", Reason: "disk is full"}
	for _, test := range []struct {
		task   jobs.Task
		pauses Pauses
		want   string
	}{
		{pending, Pauses{"media": own}, "queue paused 20m ago by ann: disk is full"},
		{pending, Pauses{"mail": own}, "no worker runs"},
		{pending, Pauses{"": {At: noon.Add(-time.Hour), By: "bob"}}, "all queues paused 1h ago by bob"},
		{pending, Pauses{"": {At: noon, By: "bob"}, "media": own}, "queue paused 20m ago by ann: disk is full"},
		{scheduled, Pauses{"media": own}, "runs at 15:11:15"},
	} {
		if got := why(test.task, 0, 0, Gates{Pauses: test.pauses}, nil, noon); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

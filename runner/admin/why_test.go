package admin_test

import (
	"testing"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

var noon = time.Date(2026, 1, 31, 14, 11, 15, 0, time.FixedZone("CET", 3600))

func TestWhyTaskWaits(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	worker := func(name string, more func(*admin.Worker)) admin.Worker {
		w := admin.Worker{ID: "id of " + name, Name: name, Slots: 4, Jobs: []string{"command"}, State: "ready"}
		if more != nil {
			more(&w)
		}
		return w
	}
	idle := worker("web1:811", nil)
	busy := worker("web2:99", func(w *admin.Worker) { w.Running = []int64{1, 2, 3, 4} })
	lost := worker("web3:5", func(w *admin.Worker) { w.State = "lost" })
	draining := worker("web4:7", func(w *admin.Worker) { w.State = "draining" })
	mail := worker("web5:8", func(w *admin.Worker) { w.Queues = []jobs.QueueMax{{Name: "mail"}} })
	sender := worker("app", func(w *admin.Worker) { w.Jobs, w.Slots = []string{"email.send"}, 2 })

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
	running := jobs.Task{State: jobs.Running, Worker: "web1:811", WorkerID: idle.ID, StartedAt: noon.Add(-11 * time.Second),
		LeaseExpiresAt: noon.Add(time.Minute)}
	stopping := running
	stopping.CancelRequestedAt = noon.Add(-3 * time.Second)
	orphan := running
	orphan.Worker, orphan.WorkerID = "web3:5", lost.ID // the clock of its machine, which set the lease, is ahead

	for _, test := range []struct {
		task    jobs.Task
		ahead   int
		workers []admin.Worker
		want    string
	}{
		{jobs.Task{State: jobs.Completed}, 0, nil, ""},
		{scheduled, 0, nil, "runs at 22:11:15"},
		{tomorrow, 0, nil, "runs at 2026-02-01 10:11:15"},
		{due, 0, nil, "no worker runs"},
		{retrying, 0, nil, "waits for its next attempt at 14:12:03 (backoff 48s)"},
		{quick, 0, nil, "waits for its next attempt at 14:11:15 (backoff 300ms)"},
		{pending, 3, nil, "no worker runs"},
		{pending, 3, []admin.Worker{lost}, "no worker runs"},
		{pending, 3, []admin.Worker{lost, draining}, "no worker runs (web4:7: draining)"},
		{pending, 3, []admin.Worker{mail}, "no worker serves queue media"},
		{email, 3, []admin.Worker{mail, idle}, "no worker has job email.send"},
		{pending, 41, []admin.Worker{mail, busy, sender, draining}, "behind 41 tasks, 4/4 slots busy"},
		{pending, 41, []admin.Worker{busy, idle}, "behind 41 tasks, 4/8 slots busy"},
		{pending, 1, []admin.Worker{busy, idle}, "behind 1 task, 4/8 slots busy"},
		{email, 1203, []admin.Worker{busy, sender}, "behind 1,203 tasks, 0/2 slots busy"},
		{running, 0, []admin.Worker{idle}, "running on web1:811 for 11s"},
		{stopping, 0, []admin.Worker{idle}, "running on web1:811 for 11s, asked to stop 3s ago"},
		{orphan, 0, []admin.Worker{lost}, "web3:5 is gone, and no worker runs that could take over"},
		{orphan, 0, []admin.Worker{idle}, "web3:5 is gone; another worker will take over"},
	} {
		wait := (admin.Surroundings{Ahead: test.ahead, Workers: test.workers}).Wait(test.task, noon)
		if got := ui.Wait(wait, test.task, noon); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestWhyPausedTaskWaits(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	pending := jobs.Task{State: jobs.Pending, Queue: "media", Job: "command", RunAt: noon.Add(-time.Minute)}
	scheduled := pending
	scheduled.State, scheduled.RunAt = jobs.Scheduled, noon.Add(time.Hour)
	own := admin.Pause{At: noon.Add(-20 * time.Minute), By: "ann", Reason: "disk is full"}
	for _, test := range []struct {
		task   jobs.Task
		pauses admin.PauseMap
		want   string
	}{
		{pending, admin.PauseMap{"media": own}, "queue paused 20m ago by ann: disk is full"},
		{pending, admin.PauseMap{"mail": own}, "no worker runs"},
		{pending, admin.PauseMap{admin.AllQueues: {At: noon.Add(-time.Hour), By: "bob"}}, "all queues paused 1h ago by bob"},
		{pending, admin.PauseMap{admin.AllQueues: {At: noon, By: "bob"}, "media": own}, "queue paused 20m ago by ann: disk is full"},
		{scheduled, admin.PauseMap{"media": own}, "runs at 15:11:15"},
	} {
		if got := ui.Wait((admin.Surroundings{Pauses: test.pauses}).Wait(test.task, noon), test.task,
			noon); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestWhyTaskWaitsForOthers(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	blocked := jobs.Task{State: jobs.Blocked, Queue: "media", Job: "command", Lane: "acct-7", RunAt: noon.Add(-time.Minute)}
	after := blocked
	after.Waits, after.DependsOn, after.DependsOnAny = true, []int64{7}, []int64{9, 8}
	one := after
	one.DependsOnAny = nil
	pending := blocked
	pending.State = jobs.Pending
	worker := []admin.Worker{{Name: "web1:811", Slots: 4, Jobs: []string{"command"}, State: "ready"}}
	limit := func(kind admin.TargetKind, name string, l admin.LimitStatus) []admin.LimitStatus {
		l.Target = admin.Target{Kind: kind, Name: name}
		return []admin.LimitStatus{l}
	}
	for want, test := range map[string]struct {
		task jobs.Task
		s    admin.Surroundings
	}{
		"waits for task 7 and 2 more":   {after, admin.Surroundings{Holders: []int64{5}}},
		"waits for task 7":              {one, admin.Surroundings{}},
		"lane acct-7 is held by task 5": {blocked, admin.Surroundings{Holders: []int64{5}}},
		"limit lane:acct-7: next start at 14:12:15": {blocked,
			admin.Surroundings{Limits: limit("lane", "acct-7", admin.LimitStatus{NextAt: noon.Add(time.Minute)})}},
		"lane acct-7 is free: a worker gives it to the next": {blocked, admin.Surroundings{}},
		"limit queue:media: 2 of 2 running": {pending,
			admin.Surroundings{Workers: worker, Limits: limit("queue", "media", admin.LimitStatus{Limit: admin.Limit{Running: 2},
				InUse: 2})}},
		"limit job:command: next start at 14:12:15": {pending,
			admin.Surroundings{Workers: worker, Limits: limit("job", "command", admin.LimitStatus{NextAt: noon.Add(time.Minute)})}},
		"no worker runs": {pending,
			admin.Surroundings{Limits: limit("queue", "media", admin.LimitStatus{Limit: admin.Limit{Running: 2}, InUse: 2})}},
	} {
		if got := ui.Wait(test.s.Wait(test.task, noon), test.task, noon); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

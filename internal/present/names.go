package present

import (
	"context"
	"encoding/json"
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

const (
	recentTasks = 1000 // number of the newest tasks in which ReadNames looks for names
	mostNames   = 50   // maximum number of labels, of lanes and of metadata that ReadNames returns
	longValue   = 60   // a longer text of metadata is no suggestion, only its key is
)

// ReadNames returns names to suggest in a search: the names of queues, workers and schedules, and the names that occur in the newest tasks.
func ReadNames(ctx context.Context, r *runner.Runner, queues []runner.Queue) (search.Names, error) {
	names := search.Names{}
	add := func(key, name string) {
		if name != "" {
			names[key] = append(names[key], name)
		}
	}
	add(search.KeyJob, jobs.CommandJob)
	for _, q := range queues {
		add(search.KeyQueue, q.Queue)
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		add(search.KeyWorker, w.Name)
		names[search.KeyJob] = append(names[search.KeyJob], w.Jobs...)
		for _, q := range w.Queues {
			add(search.KeyQueue, q.Queue)
		}
	}
	schedules, err := r.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range schedules {
		add(search.KeySchedule, s.Name)
		add(search.KeyQueue, s.Spec.Queue)
		add(search.KeyJob, s.Spec.Job)
	}
	recent, err := admin.Store(r).RecentNames(ctx, recentTasks)
	if err != nil {
		return nil, err
	}
	for _, t := range recent {
		add(search.KeyQueue, t.Queue)
		add(search.KeyJob, t.Job)
		add(search.KeyLabel, t.Label)
		add(search.KeyLane, t.Lane)
		var metadata map[string]string
		_ = json.Unmarshal([]byte(t.Metadata), &metadata) // plain SQL can write anything; then nothing is suggested
		for key, value := range metadata {
			if len(value) > longValue {
				value = ""
			}
			add(search.KeyMeta, key+"="+value)
		}
	}
	for key, list := range names {
		slices.Sort(list)
		if list = slices.Compact(list); key == search.KeyLabel || key == search.KeyLane || key == search.KeyMeta {
			list = list[:min(len(list), mostNames)]
		}
		names[key] = list
	}
	return names, nil
}

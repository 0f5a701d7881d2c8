package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// The metrics are in the format of Prometheus. Most values come from the
// database, so every process that has the same database reports the same
// values. The counters of rejected and of waiting writes describe this process
// only.

// family is a metric with its samples. The client library of Prometheus would
// add 0.2 ms to the start of every command of runner.
type family struct {
	kind, name, help string
	samples          bytes.Buffer
}

const (
	counterKind = "counter"
	gaugeKind   = "gauge"
)

// add adds a sample. The arguments in pairs are the name of a label, its value,
// the name of the next label, and so on.
func (f *family) add(value float64, pairs ...string) {
	f.samples.WriteString(f.name)
	separator := "{"
	for pair := range slices.Chunk(pairs, 2) {
		f.samples.WriteString(separator + pair[0] + `="` + labelEscapes.Replace(strings.ToValidUTF8(pair[1], "\ufffd")) + `"`)
		separator = ","
	}

	if len(pairs) > 0 {
		f.samples.WriteString("}")
	}
	fmt.Fprintln(&f.samples, "", strconv.FormatFloat(value, 'g', -1, 64))
}

// write writes the family in the text format of Prometheus.
func (f *family) write(w io.Writer) {
	if f.samples.Len() > 0 {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, f.kind, f.samples.Bytes())
	}
}

// labelEscapes escapes the value of a label.
var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (h *handler) metrics(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), slowTimeout)
	defer cancel()

	c, err := h.collect(ctx)
	if err != nil {
		h.logger.Warn("metrics", "err", err)
		http.Error(w, "503: "+err.Error(), http.StatusServiceUnavailable)
		return
	}

	var text strings.Builder
	for _, f := range c.list {
		f.write(&text)
	}

	send(w, req, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", text.String())
}

// collection is the list of metrics of one scrape.
type collection struct {
	at   time.Time
	list []*family
}

func (c *collection) add(kind, name, help string) *family {
	f := &family{kind: kind, name: name, help: help}
	c.list = append(c.list, f)
	return f
}

func (c *collection) gauge(name, help string) *family   { return c.add(gaugeKind, name, help) }
func (c *collection) counter(name, help string) *family { return c.add(counterKind, name, help) }

func (h *handler) collect(ctx context.Context) (*collection, error) {
	select {
	case h.scraping <- struct{}{}: // one at a time, or scrapes could take all read connections
		defer func() { <-h.scraping }()
	case <-ctx.Done():
		return nil, fmt.Errorf("an earlier scrape still runs: %w", ctx.Err())
	}

	c := &collection{at: time.Now()}
	queues, err := admin.Queues(ctx, h.r)
	if err != nil {
		return nil, err
	}

	totals, err := db.Of(h.r).Totals(ctx)
	if err != nil {
		return nil, err
	}

	c.tasks(queues)
	workers, err := admin.Workers(ctx, h.r)
	if err != nil {
		return nil, err
	}

	c.workers(workers)
	c.attempts(totals, queues)
	schedules, err := admin.Schedules(ctx, h.r)
	if err != nil {
		return nil, err
	}

	c.schedules(schedules)
	c.process(h.r)
	return c, nil
}

func (c *collection) tasks(queues []admin.QueueStatus) {
	tasks := c.gauge("runner_tasks", "Unfinished tasks by queue and state.")
	oldest := c.gauge("runner_oldest_pending_seconds", "How long the oldest pending task has been due; 0 if none is pending.")
	paused := c.gauge("runner_queue_paused", "1 if the queue is paused.")
	for _, q := range queues {
		for _, s := range taskspec.Unfinished() {
			tasks.add(float64(q.Counts[s]), "queue", q.Name, "state", string(s))
		}

		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(c.at.Sub(q.Oldest), 0).Seconds()
		}
		oldest.add(age, "queue", q.Name)
		paused.add(oneIf(!q.Pause.At.IsZero()), "queue", q.Name)
	}
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

func (c *collection) workers(workers []admin.Worker) {
	alive, busy, slots := ui.LiveWorkers(workers)
	c.gauge("runner_workers", "Workers that are alive.").add(float64(alive))
	total := c.gauge("runner_slots", "Slots of all workers that are alive.")
	total.add(float64(busy), "state", "busy")
	total.add(float64(max(slots-busy, 0)), "state", "free")
}

func (c *collection) attempts(totals []db.Total, queues []admin.QueueStatus) {
	attempts := c.counter("runner_attempts_total",
		"Attempts that ended, by result: completed, or the reason of the failure. Workers update it with their heartbeats.")
	losses := c.counter("runner_losses_total", "Attempts whose worker was lost.")
	lost := map[string]int{}
	for _, q := range queues {
		lost[q.Name] = 0
	}

	for _, t := range totals {
		attempts.add(float64(t.N), "queue", t.Queue, "job", t.Job, "result", t.Result)
		if t.Result == string(jobs.ReasonLost) {
			lost[t.Queue] += int(t.N)
		}
	}

	for _, queue := range slices.Sorted(maps.Keys(lost)) {
		losses.add(float64(lost[queue]), "queue", queue)
	}
}

func (c *collection) schedules(schedules []jobs.Schedule) {
	skipped := c.counter("runner_schedule_skipped_total", "Ticks skipped because an earlier task was unfinished.")
	next := c.gauge("runner_schedule_next_timestamp_seconds", "Next tick of the schedule; missing while the schedule is paused.")
	late := c.gauge("runner_schedule_late", "1 if no task of the schedule has completed for longer than its --alert-after.")
	for _, s := range schedules {
		if _, is := taskspec.Late(&s, c.at); s.AlertAfter > 0 {
			late.add(oneIf(is), "schedule", s.Name)
		}
		skipped.add(float64(s.Skipped), "schedule", s.Name)
		if !s.NextAt.IsZero() {
			next.add(float64(s.NextAt.UnixMilli())/1000, "schedule", s.Name)
		}
	}
}

// process adds the metrics for the size of the database and for the counters of
// this process.
func (c *collection) process(r *runner.Runner) {
	file, wal := db.Of(r).Size()
	size := c.gauge("runner_db_bytes", "Size of the database file and of its write-ahead log.")
	size.add(float64(file), "file", "db")
	size.add(float64(wal), "file", "wal")
	c.gauge("runner_build_info", "Always 1; the version is a label.").add(1, "version", db.RunnerVersion)
	c.counter("runner_fenced_total",
		"Results and heartbeats of this process that were rejected because a newer attempt owns the task.").
		add(float64(db.Of(r).Fenced.Load()))
	c.counter("runner_busy_retries_total",
		"How often writes of this process waited for another process.").add(float64(db.Of(r).BusyRetries()))
}

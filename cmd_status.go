package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func statusCommand(a *app) *cli.Command {
	return &cli.Command{
		Name: "status", Category: "See", Usage: "queues, workers, what is wrong",
		UsageText: "runner status [-q NAME]... [-f] [--format TEMPLATE]",
		Flags: []cli.Flag{repeated("queue q", "NAME", "only this queue; repeatable", one(parseQueue)),
			boolOption("follow f", "draw again every 2s, with plots of the last hour, until ^C (terminal only)"), formatOption()},
		Description: `The first line says whether anything works here. Then the queues, the workers,
and what somebody should look at, each with the command to type.

COLUMNS
  PENDING SCHED BLOCK RETRY RUN   tasks in that state now
  FAILED 24H  DONE 24H            tasks that ended so in the last 24 hours
  OLDEST                          the pending task that waits longest
  paused                          nothing of the queue starts (runner resume)
  limit                           it is at its limit (runner limit list)
  SLOTS                           busy/all
  With -q, of the last hour:
  STARTS             attempts that started
  WAIT P50 WAIT P95  from when a task was due until it started, half and 95 of
                     100 waited no longer; RUN: how long its last attempt took.
                     Exact up to 10,000 tasks that ended (of all queues), then
                     of the last 10,000, and STARTS estimated from counters.
  LIMIT              of the queue: running/most at once, starts/time
  On a narrow terminal some of them leave.
  In a pipe, separated by tabs: a line per record, its first field queue,
  worker, schedule or problem, then the record's values in the order of --json.

EXIT STATUS
  0   the database can be read, whatever is wrong with its tasks
  1   no database, or it cannot be read
  2   wrong usage
  75  the database was busy for too long`,
		Action: func(c *cli.Context) error {
			o, err := readStatusOptions(c, a.printer)
			if err != nil {
				return err
			}
			r, err := a.open(c, false, runner.Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			return runStatus(c.Context, r, a.printer, o)
		},
	}
}

type statusOptions struct {
	queues []string // nil: all
	follow bool
	format *formatter // nil: none
}

func readStatusOptions(c *cli.Context, p *printer) (o statusOptions, err error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return o, usage("status takes no words: %q", words[0]).hint("runner status -q %s", words[0])
	}
	o = statusOptions{queues: get[[]string](c, "queue"), follow: get[bool](c, "follow")}
	if c.IsSet("format") {
		o.format, err = p.formatter(get[string](c, "format"))
	}
	if err == nil && o.follow && (!p.out.tty || p.json || o.format != nil) {
		err = usage("--follow draws on a terminal").hint("runner status --json, every so often")
	}
	return o, err
}

// redrawEvery is how often --follow looks.
const redrawEvery = 2 * time.Second

func runStatus(ctx context.Context, r *runner.Runner, p *printer, o statusOptions) error {
	for {
		s, err := readStatus(ctx, r, p.now(), o.queues)
		if err != nil {
			return err
		}
		switch {
		case p.json:
			return p.record(s.record())
		case o.format != nil:
			return o.format.record(s.record())
		case !p.out.tty:
			return s.lines(p)
		}
		if !o.follow {
			s.draw(p)
			return nil
		}
		if s.trend, err = r.Trend(ctx, time.Minute, trendMinutes); err != nil {
			return err
		}
		p.out.measure()
		s.redraw(p)
		if err := p.flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redrawEvery):
		}
	}
}

// standing is how a database and its workers stand.
type standing struct {
	path        string
	dbSize, wal int64
	queues      []runner.Queue
	figures     map[string]runner.Figures // of each queue; nil: nobody asked
	held        runner.Gates
	workers     []runner.WorkerInfo
	schedules   []jobs.Schedule
	problems    []runner.Problem
	trend       []runner.Stretch // the last hour by the minute; nil: nobody asked
	now         time.Time
	alive       int // workers that are not lost
	busy, slots int // of those
}

func readStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (standing, error) {
	s := standing{path: r.Path(), now: now}
	s.dbSize, s.wal = r.Size()
	var err error
	if s.queues, err = r.Queues(ctx); err != nil {
		return s, err
	}
	if only != nil {
		s.queues = slices.DeleteFunc(s.queues, func(q runner.Queue) bool { return !slices.Contains(only, q.Queue) })
		s.figures = map[string]runner.Figures{}
		for _, q := range s.queues {
			if s.figures[q.Queue], err = r.Figures(ctx, q.Queue); err != nil {
				return s, err
			}
		}
	}
	if s.held, err = r.Gates(ctx); err != nil {
		return s, err
	}
	if s.workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.schedules, err = r.Schedules(ctx); err != nil {
		return s, err
	}
	alive := slices.DeleteFunc(slices.Clone(s.workers), func(w runner.WorkerInfo) bool { return runner.WorkerState(w, now) == runner.WorkerLost })
	s.alive = len(alive)
	s.busy, s.slots = runner.BusySlots(alive)
	s.problems = runner.Problems(s.queues, s.held.Pauses, s.workers, s.schedules, now)
	return s, nil
}

// redraw draws the standing over the one before, line by line: nothing flickers, and what was longer is cleared.
func (s *standing) redraw(p *printer) {
	drawn := *p
	var text strings.Builder
	drawn.answer = bufio.NewWriter(&text)
	s.draw(&drawn)
	drawn.flush()
	p.print("\x1b[H" + strings.ReplaceAll(text.String(), "\n", "\x1b[K\n") + "\x1b[J")
}

// trendMinutes is how far back the plots of --follow reach.
const trendMinutes = 60

// plots draws what ended in the last hour, a bar for each minute, or for several where the terminal is narrow.
func (s *standing) plots(to stream) string {
	if s.trend == nil {
		return ""
	}
	const label = len("completed ")
	var b strings.Builder
	for _, row := range []struct {
		state jobs.State
		paint colour
	}{{jobs.Completed, green}, {jobs.Failed, red}} {
		values := make([]int, len(s.trend))
		sum := 0
		for i, minute := range s.trend {
			values[i] = minute.Ended[row.state]
			sum += values[i]
		}
		total := " " + count(int64(sum)) + " in 1h"
		room := to.width - label - len(total)
		if sum == 0 || room < 10 {
			continue
		}
		per := 1
		for len(values)/per > room {
			per++
		}
		b.WriteString(fmt.Sprintf("%-*s", label, row.state) + to.paint(row.paint, blocks(values, per)) + total + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// blocks draws bars of eighths, each of so many values.
func blocks(values []int, per int) string {
	var bars []int
	most := 1
	for part := range slices.Chunk(values, per) {
		sum := 0
		for _, v := range part {
			sum += v
		}
		bars = append(bars, sum)
		most = max(most, sum)
	}
	var b strings.Builder
	for _, v := range bars {
		switch {
		case v == 0:
			b.WriteRune(' ')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[(v*8-1)/most])
		}
	}
	return b.String()
}

// record is the standing in JSON.
func (s *standing) record() jsonStatus {
	status := jsonStatus{DB: s.path, DBBytes: s.dbSize, WALBytes: s.wal, Schema: runner.SchemaVersion(), Version: runner.Version,
		Paused: s.held.Pauses.All(), Workers: []jsonWorker{}, Queues: []any{}, Schedules: []jsonSchedule{}, Problems: []jsonProblem{}}
	for _, w := range s.workers {
		status.Workers = append(status.Workers, workerRecord(w, s.now))
	}
	for _, q := range s.queues {
		if s.figures != nil {
			status.Queues = append(status.Queues, queueFiguresRecord(q, s.figures[q.Queue], s.now))
			continue
		}
		status.Queues = append(status.Queues, queueRecord(q, s.now))
	}
	for _, problem := range s.problems {
		status.Problems = append(status.Problems, jsonProblem{problem.Code, problem.Message, problem.Try})
	}
	for _, schedule := range s.schedules {
		status.Schedules = append(status.Schedules, scheduleRecord(schedule, false))
	}
	return status
}

// lines writes the standing for other programs.
func (s *standing) lines(p *printer) error {
	status := s.record()
	for _, q := range status.Queues {
		if err := p.values("queue", q); err != nil {
			return err
		}
	}
	for _, w := range status.Workers {
		if err := p.values("worker", w); err != nil {
			return err
		}
	}
	for _, schedule := range status.Schedules {
		if err := p.values("schedule", schedule); err != nil {
			return err
		}
	}
	for _, problem := range status.Problems {
		if err := p.values("problem", problem); err != nil {
			return err
		}
	}
	return nil
}

// draw shows the standing to people.
func (s *standing) draw(p *printer) {
	p.print(s.firstLine(p.out))
	p.print(s.plots(p.out))
	if len(s.queues) > 0 {
		p.print("\n")
		p.table(s.queueTable(p.out.width))
	}
	if len(s.figures) > 0 {
		p.print("\n")
		p.table(s.figuresTable(p.out.width))
	}
	if len(s.workers) > 0 {
		p.print("\n")
		p.table(s.workerTable(p.out.width))
	}
	summary := scheduleSummary(s.schedules, s.now)
	const heading = "SCHEDULES  "
	for i, line := range wrap(summary, p.out.width-len(heading)) {
		if summary != "" {
			p.print([]string{"\n" + heading, strings.Repeat(" ", len(heading))}[min(i, 1)] + cut(line, p.out.width-len(heading)) + "\n")
		}
	}
	for i, problem := range s.problems {
		if i == 0 && summary == "" {
			p.print("\n")
		}
		p.print(problemLines(problem, p.out))
	}
}

// scheduleSummary is "next feed in 2m · report paused"; empty without schedules.
func scheduleSummary(list []jobs.Schedule, now time.Time) string {
	var next *jobs.Schedule
	var parts, paused []string
	for i, s := range list {
		switch {
		case !s.PausedAt.IsZero():
			paused = append(paused, s.Name)
		case !s.NextAt.IsZero() && (next == nil || s.NextAt.Before(next.NextAt)):
			next = &list[i]
		}
	}
	if next != nil {
		parts = append(parts, "next "+next.Name+" "+nextText(*next, now))
	}
	const most = 3
	if len(paused) > most {
		paused = append(paused[:most:most], fmt.Sprintf("%d more", len(paused)-most))
	}
	if len(paused) > 0 {
		parts = append(parts, strings.Join(paused, ", ")+" paused")
	}
	return strings.Join(parts, " · ")
}

// firstLine says whether it is alive, and which database this is: on a second line where one is too short.
func (s *standing) firstLine(to stream) string {
	mark, paint, words := "●", green, fmt.Sprintf("%s, %d of %d slots busy", plural(s.alive, "worker"), s.busy, s.slots)
	if s.alive == 0 {
		mark, paint, words = "✗", red, "no worker"
	}
	left := cut(mark+" "+words, to.width)
	left, _ = strings.CutPrefix(left, mark)
	file := safe(s.path) + "  " + size(s.dbSize+s.wal)
	const column = 40
	used := cells(mark + left)
	blanks := max(min(column-used, to.width-used-cells(file)), 2)
	if used+blanks+cells(file) <= to.width {
		return to.paint(paint, mark) + left + strings.Repeat(" ", blanks) + file + "\n"
	}
	return to.paint(paint, mark) + left + "\n" + "  " + cutLeft(file, to.width-2) + "\n"
}

// cutLeft shortens a text to so many cells, with … at its beginning.
func cutLeft(text string, width int) string {
	if cells(text) <= width {
		return text
	}
	for cells(text)+1 > width && text != "" {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return "…" + text
}

func (s *standing) queueTable(width int) table {
	t := table{columns: []column{{name: "QUEUE"}, {name: "PENDING", right: true}, {name: "SCHED", right: true, leaves: 2},
		{name: "BLOCK", right: true, leaves: 1}, {name: "RETRY", right: true, leaves: 3}, {name: "RUN", right: true, leaves: 8},
		{name: "FAILED 24H", right: true, leaves: 7}, {name: "DONE 24H", right: true, leaves: 4}, {name: "OLDEST", right: true, leaves: 5}, {name: "", leaves: 6}}}
	number := func(n int) string { return count(int64(n)) }
	for _, q := range s.queues {
		oldest := "–"
		if !q.Oldest.IsZero() {
			oldest = age(s.now.Sub(q.Oldest))
			if d := s.now.Sub(q.Oldest); d >= time.Hour && d < 24*time.Hour {
				oldest = took(d)
			}
		}
		t.rows = append(t.rows, []string{cut(q.Queue, nameWidth(width)), number(q.Counts[jobs.Pending]), number(q.Counts[jobs.Scheduled]),
			number(q.Counts[jobs.Blocked]), number(q.Counts[jobs.Retrying]), number(q.Counts[jobs.Running]),
			number(q.Ended[jobs.Failed]), number(q.Ended[jobs.Completed]), oldest, s.heldWord(q)})
	}
	return t
}

// heldWord marks a queue that starts nothing now.
func (s *standing) heldWord(q runner.Queue) string {
	_, full := s.held.Closed[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]
	switch {
	case paused(q):
		return "paused"
	case full:
		return "limit"
	}
	return ""
}

// figuresTable is what the last hour of each queue tells.
func (s *standing) figuresTable(width int) table {
	t := table{columns: []column{{name: "LAST HOUR"}, {name: "STARTS", right: true}, {name: "WAIT P50", right: true, leaves: 1},
		{name: "WAIT P95", right: true, leaves: 3}, {name: "RUN P50", right: true, leaves: 2}, {name: "RUN P95", right: true, leaves: 4}, {name: "LIMIT", leaves: 5}}}
	for _, q := range s.queues {
		f := s.figures[q.Queue]
		row := []string{cut(q.Queue, nameWidth(width)), count(int64(f.Starts)), "–", "–", "–", "–", ""}
		if f.Tasks > 0 {
			row = append(row[:2], took(f.WaitP50), took(f.WaitP95), took(f.RunP50), took(f.RunP95), "")
		}
		if l, ok := s.held.Limits[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]; ok {
			row[6] = limitText(l)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (s *standing) workerTable(width int) table {
	t := table{columns: []column{{name: "WORKER"}, {name: "SLOTS", right: true}, {name: "QUEUES", leaves: 1}, {name: "UP", leaves: 2},
		{name: "SEEN"}, {name: ""}}}
	for _, w := range s.workers {
		queues := "all"
		if w.Queues != nil {
			var names []string
			for _, q := range w.Queues {
				if names = append(names, q.Queue); q.Max > 0 {
					names[len(names)-1] += fmt.Sprintf("=%d", q.Max)
				}
			}
			queues = strings.Join(names, ",")
		}
		state := runner.WorkerState(w, s.now)
		if state == runner.WorkerReady {
			state = ""
		}
		t.rows = append(t.rows, []string{cut(safe(w.Name), nameWidth(width)), fmt.Sprintf("%d/%d", len(w.Running), w.Slots),
			cut(queues, nameWidth(width)), age(s.now.Sub(w.StartedAt)), age(s.now.Sub(w.BeatAt)) + " ago", state})
	}
	return t
}

// nameWidth is how much of a line the name of a queue or worker may take, so that its figures find room.
func nameWidth(width int) int { return max(width/3, 8) }

// problemLines shows a problem and the command to type: on one line if they fit, else below each other.
func problemLines(problem runner.Problem, to stream) string {
	mark := to.paint(yellow, "!")
	message, try := safe(problem.Message), safe(problem.Try)
	if blanks := to.width - cells("! "+message+try); blanks >= 3 {
		return mark + " " + message + "   " + try + "\n"
	}
	var b strings.Builder
	for i, line := range wrap(message, to.width-2) {
		if i > 0 {
			mark = " "
		}
		b.WriteString(mark + " " + cut(line, to.width-2) + "\n")
	}
	for _, line := range wrap(try, to.width-4) {
		b.WriteString("    " + cut(line, to.width-4) + "\n")
	}
	return b.String()
}

package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

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
	mark, paint, words := "●", green, fmt.Sprintf("%s, %d of %d slots busy", humanize.Plural(s.alive, "worker"), s.busy, s.slots)
	if s.alive == 0 {
		mark, paint, words = "✗", red, "no worker"
	}
	left := cut(mark+" "+words, to.width)
	left, _ = strings.CutPrefix(left, mark)
	file := humanize.Safe(s.path) + "  " + humanize.Size(s.dbSize+s.wal)
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
		{name: "FAILED 24H", right: true, leaves: 7}, {name: "DONE 24H", right: true, leaves: 4}, {name: "OLDEST", right: true, leaves: 5},
		{name: "", leaves: 6}}}
	number := func(n int) string { return humanize.Count(int64(n)) }
	for _, q := range s.queues {
		oldest := "–"
		if !q.Oldest.IsZero() {
			oldest = humanize.Age(s.now.Sub(q.Oldest))
			if d := s.now.Sub(q.Oldest); d >= time.Hour && d < 24*time.Hour {
				oldest = humanize.Took(d)
			}
		}
		t.rows = append(t.rows, []string{cut(q.Queue, nameWidth(width)), number(q.Counts[jobs.Pending]), number(q.Counts[jobs.Scheduled]),
			number(q.Counts[jobs.Blocked]), number(q.Counts[jobs.Retrying]), number(q.Counts[jobs.Running]),
			number(q.Ended[jobs.Failed]), number(q.Ended[jobs.Completed]), oldest, s.heldWord(q)})
	}
	return t
}

// figuresTable is what the last hour of each queue tells.
func (s *standing) figuresTable(width int) table {
	t := table{columns: []column{{name: "LAST HOUR"}, {name: "STARTS", right: true}, {name: "WAIT P50", right: true, leaves: 1},
		{name: "WAIT P95", right: true, leaves: 3}, {name: "RUN P50", right: true, leaves: 2}, {name: "RUN P95", right: true, leaves: 4},
		{name: "LIMIT", leaves: 5}}}
	for _, q := range s.queues {
		f := s.figures[q.Queue]
		row := []string{cut(q.Queue, nameWidth(width)), humanize.Count(int64(f.Starts)), "–", "–", "–", "–", ""}
		if f.Tasks > 0 {
			row = append(row[:2], humanize.Took(f.WaitP50), humanize.Took(f.WaitP95), humanize.Took(f.RunP50), humanize.Took(f.RunP95), "")
		}
		if l, ok := s.held.Limits[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]; ok {
			row[6] = strings.TrimSpace(runner.LimitRunning(l) + " " + runner.LimitRate(l)) // 2/2 100/1m
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
		t.rows = append(t.rows, []string{cut(humanize.Safe(w.Name), nameWidth(width)), fmt.Sprintf("%d/%d", len(w.Running), w.Slots),
			cut(queues, nameWidth(width)), humanize.Age(s.now.Sub(w.StartedAt)), humanize.Age(s.now.Sub(w.BeatAt)) + " ago", state})
	}
	return t
}

// nameWidth is how much of a line the name of a queue or worker may take, so that its figures find room.
func nameWidth(width int) int { return max(width/3, 8) }

// problemLines shows a problem and the command to type: on one line if they fit, else below each other.
func problemLines(problem runner.Problem, to stream) string {
	mark := to.paint(yellow, "!")
	message, try := humanize.Safe(problem.Message), humanize.Safe(problem.Try)
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

// redraw draws the standing over the one before, line by line: nothing flickers, and what was longer is cleared.
func (s *standing) redraw(p *printer) {
	p.print("\x1b[H" + strings.ReplaceAll(p.captured(s.draw), "\n", "\x1b[K\n") + "\x1b[J")
}

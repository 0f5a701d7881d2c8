package ui

import (
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Draw prints the status for a terminal.
func (s *Status) Draw(p *Printer) {
	p.Print(s.firstLine(p.Stdout))
	p.section("", s.queueTable(p.Stdout.Width))
	p.section("", s.workerTable(p.Stdout.Width))
	summary := scheduleSummary(s.Schedules, s.Now)
	if summary != "" {
		p.Print("\n" + Hang("SCHEDULES  ", summary, p.Stdout.Width))
	}
	if s.PausedTasks > 0 {
		p.Print("\n" + Cut("PAUSED  "+humanize.Plural(s.PausedTasks, "task")+": runner list --paused", p.Stdout.Width) + "\n")
	}
	for i, problem := range s.Problems {
		if i == 0 && summary == "" && s.PausedTasks == 0 {
			p.Print("\n")
		}
		p.Print(problemLines(problem, p.Stdout))
	}
}

// scheduleSummary returns a line about the schedules, such as "next feed in 2m · report paused". It is empty if there are none.
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

// firstLine returns the number of workers, and the path of the database on a line
// of its own.
func (s *Status) firstLine(to Stream) string {
	mark, paint, words := "●", Green, fmt.Sprintf("%s, %d of %d slots busy", humanize.Plural(s.Alive, "worker"), s.Busy, s.Slots)
	if s.Alive == 0 {
		mark, paint, words = "✗", Red, "no worker"
	}
	file := humanize.Safe(s.Path) + "  " + humanize.Size(s.DBSize+s.wal)
	return to.Paint(paint, mark) + Cut(" "+words, to.Width-1) + "\n  " + CutLeft(file, to.Width-2) + "\n"
}

func (s *Status) queueTable(width int) Table {
	t := Table{Columns: []Column{{Name: "QUEUE"}, {Name: "PENDING", AlignRight: true},
		{Name: "SCHED", AlignRight: true, DropOrder: 2},
		{Name: "BLOCK", AlignRight: true, DropOrder: 1}, {Name: "RETRY", AlignRight: true, DropOrder: 3},
		{Name: "RUN", AlignRight: true, DropOrder: 8},
		{Name: "FAILED 24H", AlignRight: true, DropOrder: 7}, {Name: "DONE 24H", AlignRight: true, DropOrder: 4},
		{Name: "OLDEST", AlignRight: true, DropOrder: 5}, {Name: "", DropOrder: 6}}}
	number := func(n int) string { return humanize.Count(int64(n)) }
	for _, q := range s.Queues {
		oldest := "–"
		if !q.Oldest.IsZero() {
			oldest = humanize.Age(s.Now.Sub(q.Oldest))
		}
		t.Rows = append(t.Rows, []string{Cut(q.Queue, nameWidth(width)), number(q.Counts[jobs.Pending]),
			number(q.Counts[jobs.Scheduled]),
			number(q.Counts[jobs.Blocked]), number(q.Counts[jobs.Retrying]), number(q.Counts[jobs.Running]),
			number(q.Ended[jobs.Failed]), number(q.Ended[jobs.Completed]), oldest, s.heldWord(q)})
	}
	return t
}

func (s *Status) workerTable(width int) Table {
	t := Table{Columns: []Column{{Name: "WORKER"}, {Name: "SLOTS", AlignRight: true}, {Name: "QUEUES", DropOrder: 1},
		{Name: "UP", DropOrder: 2}, {Name: "SEEN"}, {Name: ""}}}
	for _, w := range s.Workers {
		state := w.State
		if state == admin.WorkerReady {
			state = ""
		}
		t.Rows = append(t.Rows, []string{Cut(humanize.Safe(w.Name), nameWidth(width)), fmt.Sprintf("%d/%d", len(w.Running), w.Slots),
			Cut(ServedQueues(w, ","), nameWidth(width)), humanize.Age(s.Now.Sub(w.StartedAt)),
			humanize.Age(s.Now.Sub(w.BeatAt)) + " ago", state})
	}
	return t
}

// nameWidth returns how wide the name of a queue or worker may be. The rest of the terminal is for the numbers.
func nameWidth(width int) int { return max(width/3, 8) }

// problemLines returns a problem and, on the same line if there is room, the
// command that helps.
func problemLines(problem Problem, to Stream) string {
	message, try := humanize.Safe(problem.Message), humanize.Safe(problem.Try)
	text := "! " + message + "   " + try
	if Cells(text) <= to.Width {
		text += "\n"
	} else {
		text = Hang("! ", message, to.Width) + Hang("    ", try, to.Width)
	}
	return to.Paint(Yellow, "!") + strings.TrimPrefix(text, "!")
}

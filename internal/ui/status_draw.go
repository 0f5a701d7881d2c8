package ui

import (
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Draw prints the status for a terminal.
func (s *Status) Draw(p *Printer) {
	p.Print(s.firstLine(p.Stdout))
	p.section("", s.queues())
	p.section("", s.workers())
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

// scheduleSummary returns a line about the schedules, such as: next feed in 2m
// · report paused. It's empty if there are none.
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

	const shown = 3
	if len(paused) > shown {
		paused = append(paused[:shown:shown], fmt.Sprintf("%d more", len(paused)-shown))
	}

	if len(paused) > 0 {
		parts = append(parts, strings.Join(paused, ", ")+" paused")
	}

	return strings.Join(parts, " · ")
}

// firstLine returns the number of workers, and the path of the database on a
// line of its own.
func (s *Status) firstLine(to Stream) string {
	mark, paint := "●", Green
	words := fmt.Sprintf("%s, %d of %d slots busy", humanize.Plural(s.Alive, "worker"), s.Busy, s.Slots)
	if s.Alive == 0 {
		mark, paint, words = "✗", Red, "no worker"
	}
	file := humanize.Safe(s.Path) + "  " + humanize.Size(s.DBSize+s.wal)
	return to.Paint(paint, mark) + Cut(" "+words, to.Width-1) + "\n  " + CutLeft(file, to.Width-2) + "\n"
}

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

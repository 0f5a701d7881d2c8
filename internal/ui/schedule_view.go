package ui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// specText describes the command or function in a Spec.
func specText(s jobs.Spec) string { return JobText(taskspec.NewTask(&s, time.Time{})) }

// Schedules is the list of schedules.
func Schedules(now time.Time, reveal bool) Sheet[jobs.Schedule] {
	return Sheet[jobs.Schedule]{
		Row:  func(s jobs.Schedule) Record { return NewSchedule(s, now, reveal) },
		Line: []string{"name", "cron", "zone", "next_at", "last_state", "last_at", "last_duration", "skipped", "JOB"},
	}
}

// nextText says when the next tick is: in 8h, now, paused.
func nextText(s jobs.Schedule, now time.Time) string {
	switch {
	case !s.PausedAt.IsZero():
		return "paused"
	case s.NextAt.IsZero() && taskspec.AtBoot(s.Cron):
		return "at boot"
	case s.NextAt.IsZero():
		return "–"
	case !s.NextAt.After(now):
		return "now"
	}
	return "in " + humanize.Age(s.NextAt.Sub(now))
}

// lastText returns the last task's state, and how long ago it was due:
// completed 15h ago.
func lastText(s jobs.Schedule, now time.Time) string {
	if s.LastState == "" {
		return ""
	}
	return string(s.LastState) + " " + humanize.Age(now.Sub(s.LastAt)) + " ago"
}

func lastColour(cell string) Colour {
	state, _, _ := strings.Cut(cell, " ")
	return StateColour(state)
}

// DrawSchedule prints all about a schedule, for a terminal.
func DrawSchedule(p *Printer, s jobs.Schedule, next []time.Time, runs []jobs.Task, reveal bool) {
	now := p.Now()
	headline := nextText(s, now)
	if s.PausedAt.IsZero() && !s.NextAt.IsZero() {
		headline = "next " + headline
	} else if !s.PausedAt.IsZero() {
		headline = Pause(admin.Pause{At: s.PausedAt, By: s.PausedBy}, now)
	}

	p.Print(fmt.Sprintf("schedule %s   %s\n", s.Name, humanize.Safe(headline)))
	t := Task{Task: taskspec.NewTask(&s.Spec, s.CreatedAt), Input: s.Spec.Input, Reveal: reveal, Now: now}
	if !reveal {
		t.Input = nil
	}

	printFields(p, append(scheduleRules(s), t.definition()...))
	drawTicks(p, s.Zone, next)

	p.section("", Records(runs, func(t jobs.Task) Record {
		lasted := ""
		if d, ok := Lasted(t, now); ok {
			lasted = humanize.Took(d)
		}
		return Record{
			{Name: "  TASK", Value: t.ID, Right: true},
			{Name: "STATE", Text: string(t.State), Paint: StateColour},
			{Name: "DUE", Text: humanize.Clock(DueOf(t), now)},
			{Name: "TIME", Text: lasted, Right: true},
			{Name: "NOTE", Text: Note(t, Holds{}, now)},
		}
	}))
	if len(runs) > 0 {
		if p.Interactive() {
			p.Print("\n")
		}
		p.Note("  logs: runner logs %d     all: runner list --schedule %s", runs[0].ID, s.Name)
	}
}

// drawTicks prints the next ticks in the schedule's zone.
func drawTicks(p *Printer, name string, next []time.Time) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	p.section("", Records(next, func(tick time.Time) Record {
		return Record{
			{Name: "  NEXT", Text: "  " + tick.In(zone).Format("Mon 2006-01-02 15:04:05 MST")},
			{Name: Untitled, Text: "in " + humanize.Age(tick.Sub(p.Now()))},
		}
	}))
}

// scheduleRules returns a schedule's settings, for example what it does with
// missed ticks.
func scheduleRules(s jobs.Schedule) Record {
	catchUp, jitter, alert, onTick := string(s.CatchUp), "", "", ""
	if s.CatchUp == jobs.CatchUpAll {
		catchUp += " within " + humanize.WriteDuration(s.CatchUpWindow)
	}

	if s.Jitter > 0 {
		jitter = humanize.WriteDuration(s.Jitter)
	}

	if s.AlertAfter > 0 {
		alert = "after " + humanize.WriteDuration(s.AlertAfter)
	}

	if s.OnTick {
		onTick = "a function of a program makes the task"
	}

	return NewRecord("cron", s.Cron, "zone", s.Zone,
		"overlap", fmt.Sprintf("%s (%s skipped)", s.Overlap, humanize.Count(s.Skipped)),
		"catch-up", catchUp, "jitter", jitter, "alert", alert, "on tick", onTick)
}

// ScheduleRuns returns the last n tasks of a schedule that weren't deleted,
// newest first.
func ScheduleRuns(ctx context.Context, r *runner.Runner, name string, n int) ([]jobs.Task, error) {
	ids, err := db.Of(r).Runs(ctx, name, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.List(ctx, jobs.Filter{IDs: ids})
}

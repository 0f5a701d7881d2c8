package taskspec

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Hooks report these events, in jobs.Options.Event and in the variable
// RUNNER_EVENT.
const (
	EventFailed    = "failed"    // the task has failed for the last time
	EventCompleted = "completed" // the task has completed
	EventLate      = "late"      // no task of the schedule has completed for longer than AlertAfter
	EventRecovered = "recovered" // the task has completed after the previous one with its Subject had failed
	EventOutput    = "output"    // the task has completed or failed, and has printed something
)

// Events lists all events.
var Events = []string{EventFailed, EventCompleted, EventRecovered, EventOutput, EventLate}

// The task that runs a hook has these options, not those of the task that has
// ended.
const (
	HookLines    = 50       // lines of output that the hook gets on its stdin
	maxHookInput = 64 << 10 // and their bytes
	maxHookText  = 4 << 10  // bytes of the output, and of the command, in the hook's environment
	hookPriority = 1000     // at least; a hook starts before other tasks of its queue
	hookAttempts = 10
	hookTimeout  = time.Minute
)

// Hook is a command to run after an event.
type Hook struct {
	Event   string
	Command string
}

// HooksWithDefaults returns h with its empty fields taken from defaults.
func HooksWithDefaults(h, defaults command.Hooks) command.Hooks {
	return command.Hooks{
		OnFailure:  cmp.Or(h.OnFailure, defaults.OnFailure),
		OnSuccess:  cmp.Or(h.OnSuccess, defaults.OnSuccess),
		OnRecovery: cmp.Or(h.OnRecovery, defaults.OnRecovery),
		OnOutput:   cmp.Or(h.OnOutput, defaults.OnOutput),
	}
}

// Subject returns a text that the tasks of a schedule, or those with the same
// unique key, have in common: OnRecovery runs if a task completes and the
// previous task with its subject had failed. It is empty for other tasks.
func Subject(t *jobs.Task) string {
	switch {
	case t.Schedule != "":
		return SubjectOf(t.Schedule)
	case t.UniqueKey != "":
		return "unique " + t.UniqueKey
	}
	return ""
}

// SubjectOf returns the subject of a schedule's tasks.
func SubjectOf(schedule string) string { return "schedule " + schedule }

// HooksOf returns the hooks to run after an attempt of task t with outcome o,
// where h is its hooks and state its new state. A hook has no hooks itself. Run
// OnRecovery only if the previous task with the same Subject failed; HooksOf
// doesn't know.
func HooksOf(t *jobs.Task, h *command.Hooks, o *Outcome, state jobs.State) (list []Hook) {
	if *h == (command.Hooks{}) || t.Event != "" || state != jobs.Failed && state != jobs.Completed {
		return nil
	}

	add := func(event, command string) {
		if command != "" {
			list = append(list, Hook{event, command})
		}
	}
	if state == jobs.Failed {
		add(EventFailed, h.OnFailure)
	} else {
		add(EventCompleted, h.OnSuccess)
		if Subject(t) != "" {
			add(EventRecovered, h.OnRecovery)
		}
	}
	if o.OutputBytes > 0 {
		add(EventOutput, h.OnOutput)
	}

	return list
}

// hookFlags maps an event to the flag that sets its hook.
var hookFlags = map[string]string{
	EventFailed:    "on-failure",
	EventCompleted: "on-success",
	EventOutput:    "on-output",
	EventRecovered: "on-recovery",
	EventLate:      "on-failure",
}

// HookSpec returns the task that runs a hook after the attempt of t with
// outcome o and change c. output is the last lines that t printed. The hook
// gets the variables and the metadata of t, but neither its environment file
// nor its directory: t may have failed because one of them is missing.
func HookSpec(h Hook, t jobs.Task, o Outcome, c Change, output []byte) jobs.Spec {
	output = output[max(len(output)-maxHookInput, 0):]
	s := jobs.Command(command.Shell(plainText(h.Command)), jobs.Queue(t.Queue), jobs.Priority(max(t.Priority, hookPriority)),
		jobs.Label(fmt.Sprintf("%s of task %d", hookFlags[h.Event], t.ID)), jobs.MaxAttempts(hookAttempts), jobs.Timeout(hookTimeout))
	// Mail servers such as exim4 and dma deliver in the background, after
	// sendmail has exited. Without this, a hook's mail would be lost.
	s.LeaveChildren = true
	s.Event, s.CreatedBy, s.Input, s.Metadata = h.Event, t.CreatedBy, output, t.Metadata
	code, signal := "", ""
	if o.ExitCode != nil {
		code = strconv.Itoa(*o.ExitCode)
	}
	if o.Signal != 0 {
		signal = strconv.Itoa(o.Signal)
	}

	id := ""
	if h.Event != EventLate { // which is about the schedule, not about its last task
		id = strconv.FormatInt(t.ID, 10)
	}

	described := plainText(Describe(&t))
	s.Env = map[string]string{}
	maps.Copy(s.Env, t.Env)
	maps.Copy(s.Env, map[string]string{
		"RUNNER_EVENT":            h.Event,
		"RUNNER_EVENT_TITLE":      plainText(eventTitle(h.Event, &t, c.Error, o.ErrorLine)),
		"RUNNER_EVENT_TASK":       id,
		"RUNNER_EVENT_LABEL":      plainText(t.Label),
		"RUNNER_EVENT_COMMAND":    strings.ToValidUTF8(described[:min(len(described), maxHookText)], ""),
		"RUNNER_EVENT_QUEUE":      t.Queue,
		"RUNNER_EVENT_SCHEDULE":   t.Schedule,
		"RUNNER_EVENT_STATE":      string(c.State),
		"RUNNER_EVENT_REASON":     string(c.Reason),
		"RUNNER_EVENT_ERROR":      plainText(c.Error),
		"RUNNER_EVENT_ERROR_LINE": o.ErrorLine,
		"RUNNER_EVENT_EXIT_CODE":  code,
		"RUNNER_EVENT_SIGNAL":     signal,
		"RUNNER_EVENT_ATTEMPT":    strconv.Itoa(t.Attempt),
		"RUNNER_EVENT_DURATION":   strconv.FormatFloat(o.Duration.Seconds(), 'f', 3, 64),
		"RUNNER_EVENT_OUTPUT":     lastText(output),
	})
	if len(t.Metadata) > 0 {
		if object, err := usercode.Marshal(t.Metadata); err == nil {
			s.Env["RUNNER_EVENT_METADATA"] = string(object)
		}
	}
	if u := o.Usage; u != (command.Usage{}) {
		s.Env["RUNNER_EVENT_CPU_TIME"] = strconv.FormatFloat((u.User + u.System).Seconds(), 'f', 3, 64)
		s.Env["RUNNER_EVENT_MAX_RSS"] = strconv.FormatInt(u.MaxRSS, 10)
		s.Env["RUNNER_EVENT_READ_BYTES"] = strconv.FormatInt(u.Read, 10)
		s.Env["RUNNER_EVENT_WRITTEN_BYTES"] = strconv.FormatInt(u.Written, 10)
	}

	return s
}

// eventTitle describes an event in a line, fit for the subject of a mail: "task
// 12 (nightly) failed: exit status 3: no space left".
func eventTitle(event string, t *jobs.Task, problem, lastLine string) string {
	title := fmt.Sprintf("task %d", t.ID)
	if name := cmp.Or(t.Label, t.Schedule); name != "" {
		title += " (" + name + ")"
	}

	switch event {
	case EventLate:
		title = "schedule " + t.Schedule + " is late"
	case EventOutput:
		title += " printed output"
	default:
		title += " " + event
	}

	if problem != "" && event != EventOutput {
		line, _, _ := strings.Cut(problem, "\n")
		title += ": " + line
		if lastLine != "" && event == EventFailed {
			title += ": " + lastLine
		}
	}

	return title
}

// plainText makes a text fit for a variable and for JSON, without NUL and
// invalid UTF-8.
func plainText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
}

// lastText returns the end of an output, at most maxHookText bytes, from the
// start of a line if possible.
func lastText(output []byte) string {
	text := strings.TrimRight(plainText(string(output)), "\n")
	if len(text) <= maxHookText {
		return text
	}
	text = text[len(text)-maxHookText:]
	if _, rest, found := strings.Cut(text, "\n"); found {
		text = rest
	}
	return strings.ToValidUTF8(text, "")
}

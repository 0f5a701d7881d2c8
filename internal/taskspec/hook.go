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
)

// The task that runs a hook has these options, not the options of the task that has ended.
const (
	HookLines    = 50          // maximum number of lines of output that the hook gets on its stdin
	hookPriority = 1000        // minimum priority of a hook, so that it starts before other tasks of its queue
	hookAttempts = 10          // maximum number of attempts
	hookTimeout  = time.Minute // maximum duration of an attempt
	maxHookText  = 4 << 10     // maximum bytes of the output, and of the command, in the environment of the hook
	maxHookInput = 64 << 10    // maximum bytes of output that the hook gets on its stdin
)

// Hook is a command to run after an event.
type Hook struct {
	Event   string
	Command string
}

// HooksWithDefaults returns the hooks in h. Where h has no command, it takes the command from defaults.
func HooksWithDefaults(h, defaults jobs.Hooks) jobs.Hooks {
	return jobs.Hooks{OnFailure: cmp.Or(h.OnFailure, defaults.OnFailure), OnSuccess: cmp.Or(h.OnSuccess, defaults.OnSuccess),
		OnRecovery: cmp.Or(h.OnRecovery, defaults.OnRecovery), OnOutput: cmp.Or(h.OnOutput, defaults.OnOutput)}
}

// Subject returns a text that is equal for all tasks of a schedule, or for all tasks with a unique key. OnRecovery runs if a task completes
// and the previous task with the same text had failed. Subject returns an empty text if the task has neither a schedule nor a unique key.
func Subject(t *jobs.Task) string {
	switch {
	case t.Schedule != "":
		return SubjectOf(t.Schedule)
	case t.UniqueKey != "":
		return "unique " + t.UniqueKey
	}
	return ""
}

// SubjectOf returns the subject that Subject returns for each task of a schedule.
func SubjectOf(schedule string) string { return "schedule " + schedule }

// HooksOf returns the hooks to run after an attempt of task t. The parameter h has the hooks of the task and their defaults, o is the
// outcome of the attempt, and state is the new state of the task. If the task is itself a hook, the result is empty. The result may contain
// OnRecovery, with the event EventRecovered. HooksOf does not know whether the previous task with the same Subject failed. The caller must
// check that, and must run OnRecovery only if that task failed.
func HooksOf(t *jobs.Task, h *jobs.Hooks, o *Outcome, state jobs.State) (list []Hook) {
	if *h == (jobs.Hooks{}) || t.Event != "" || state != jobs.Failed && state != jobs.Completed {
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
var hookFlags = map[string]string{EventFailed: "on-failure", EventCompleted: "on-success",
	EventOutput: "on-output", EventRecovered: "on-recovery",
	EventLate: "on-failure"}

// HookSpec returns the task that runs a hook. The parameter t is the task that has ended, o is the outcome of its last attempt, and c is
// its new state and error. The parameter "output" has the last lines that the task printed. The hook gets the metadata of the task that has
// ended. It does not get the environment file and the working directory of that task, because the task may have failed just because one of
// these is missing.
func HookSpec(h Hook, t jobs.Task, o Outcome, c Change, output []byte) jobs.Spec {
	output = output[max(len(output)-maxHookInput, 0):]
	s := jobs.Shell(plainText(h.Command)).With(jobs.Queue(t.Queue), jobs.Priority(max(t.Priority, hookPriority)),
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
	id := strconv.FormatInt(t.ID, 10)
	if h.Event == EventLate { // the event is about the schedule and not about its last task, so give no task id
		id = ""
	}
	described := plainText(Describe(t))
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
	if u := o.Usage; u != (jobs.Usage{}) {
		s.Env["RUNNER_EVENT_CPU_TIME"] = strconv.FormatFloat((u.User + u.System).Seconds(), 'f', 3, 64)
		s.Env["RUNNER_EVENT_MAX_RSS"] = strconv.FormatInt(u.MaxRSS, 10)
		s.Env["RUNNER_EVENT_READ_BYTES"] = strconv.FormatInt(u.Read, 10)
		s.Env["RUNNER_EVENT_WRITTEN_BYTES"] = strconv.FormatInt(u.Written, 10)
	}
	return s
}

// eventTitle describes an event in a line, which can be the subject of a mail: "task 12 (nightly) failed: exit status 3: no space left".
// The parameter "text" is the error, and last is the last line that the command printed.
func eventTitle(event string, t *jobs.Task, text, last string) string {
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
	if text != "" && event != EventOutput {
		line, _, _ := strings.Cut(text, "\n")
		title += ": " + line
		if last != "" && event == EventFailed {
			title += ": " + last
		}
	}
	return title
}

// plainText makes a text fit for an environment variable and for JSON: it replaces NUL and invalid UTF-8.
func plainText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
}

// lastText returns the end of an output, at most maxHookText bytes. The text begins at the start of a line if possible.
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

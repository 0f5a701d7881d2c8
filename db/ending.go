package db

import (
	"strconv"
	"strings"

	"example.com/runner/internal/pattern"
	"example.com/runner/jobs"
)

// ending is the parsed form of the text with which a list or a page describes a failed attempt: "exit 7", or "exit 7 · 1: no route" with
// the error line. The database stores the exit status, the signal and the error line in separate fields. So a search for such a text needs
// a condition on each of these fields.
type ending struct {
	reason       jobs.Reason
	exit, signal string // exit status and signal number in the text; empty if the text has none
	line         string // error line, or its beginning if the text has cut it; empty if the text has no error line
	job          string // name of a job before the ending; empty if the text has none
}

const endingSeparator = " · "

var exitOrSignal = pattern.Lazy(`^(exit|signal)(?: status)? (?:(\d{1,10})|(?:SIG)?([A-Z]{3,4}))$`)

// signalNumbers has the signals that end commands and have the same number on all systems.
var signalNumbers = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "FPE": 8, "KILL": 9, "SEGV": 11,
	"PIPE": 13, "ALRM": 14, "TERM": 15, "XCPU": 24, "XFSZ": 25}

// parseEnding parses the text of a search. It returns false if the text does not describe a failed attempt.
func parseEnding(text string) (ending, bool) {
	first, line, long := strings.Cut(text, endingSeparator)
	e, ok := parseReason(strings.TrimSpace(first), long)
	if !ok && long { // for a group of failures, pages show the name of the job before the ending
		second, rest, longer := strings.Cut(line, endingSeparator)
		if e, ok = parseReason(second, longer); ok {
			e.job, line = first, rest
		}
	}
	e.line = strings.TrimSuffix(strings.TrimSpace(line), "…") // lists put this mark at the end of a line that they have cut
	return e, ok
}

// parseReason parses the first part of an ending, such as "exit 7" or "timeout". The parameter "line" says whether an error line
// follows. People also search for single words such as "timeout" or "error" as plain text, so such a word counts as a reason only if an
// error line follows.
func parseReason(text string, line bool) (ending, bool) {
	if match := exitOrSignal().FindStringSubmatch(text); match != nil {
		number, isName := match[2], match[3] != ""
		switch {
		case match[1] == "exit" && !isName:
			return ending{reason: jobs.ReasonExit, exit: trimZeros(number)}, true
		case match[1] == "signal" && !isName:
			return ending{reason: jobs.ReasonSignal, signal: trimZeros(number)}, true
		case match[1] == "signal" && signalNumbers[match[3]] != 0:
			return ending{reason: jobs.ReasonSignal, signal: strconv.Itoa(signalNumbers[match[3]])}, true
		}
		return ending{}, false
	}
	switch reason := jobs.Reason(text); reason {
	case jobs.ReasonTimeout, jobs.ReasonError, jobs.ReasonPanic, jobs.ReasonMemory, jobs.ReasonLost, jobs.ReasonShutdown:
		return ending{reason: reason}, line
	case "not found":
		return ending{reason: jobs.ReasonStart, exit: "127"}, true
	case "not started":
		return ending{reason: jobs.ReasonStart}, true
	}
	return ending{}, false
}

func trimZeros(number string) string {
	if trimmed := strings.TrimLeft(number, "0"); trimmed != "" {
		return trimmed
	}
	return "0"
}

// condition returns the SQL condition of an ending and its arguments.
func (e ending) condition() (terms string, args []any) {
	terms, args = `tasks.outcome ->> 'reason' = ?`, []any{string(e.reason)}
	add := func(term, value string) { terms, args = terms+" AND "+term, append(args, value) }
	if e.exit != "" {
		add(`CAST(tasks.outcome ->> 'exit_code' AS text) = ?`, e.exit)
	}
	if e.signal != "" {
		add(`CAST(tasks.outcome ->> 'signal' AS text) = ?`, e.signal)
	}
	if e.job != "" {
		add(`tasks.job = ?`, noNUL(e.job))
	}
	if e.line != "" {
		like := likeText(e.line)
		add(`(tasks.outcome ->> 'error' {like} ? ESCAPE '\'`, like)
		terms, args = terms+` OR tasks.outcome ->> 'error_line' {like} ? ESCAPE '\')`, append(args, like)
	}
	return terms, args
}

// likeText returns the pattern of LIKE that finds a text anywhere.
func likeText(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}

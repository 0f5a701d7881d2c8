// Package search searches for tasks, on the pages and on the command line. It
// also says to which of them an action applies.
package search

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Term is a selector and its value. If Key is empty, the value is a text to
// search for.
type Term struct{ Key, Value string }

// These are the selectors of a search. The options of the command line have the
// same names.
const (
	KeyState    = "state"
	KeyQueue    = "queue"
	KeyJob      = "job"
	KeyLabel    = "label"
	KeyLane     = "lane"
	KeySchedule = "schedule"
	KeyBatch    = "batch"
	KeyWorker   = "worker"
	KeyMeta     = "meta"
	KeySince    = "since"
	KeyUntil    = "until"
	KeyID       = "id"
	KeyCause    = "cause" // a group of failed tasks; ParseFilter doesn't know the groups, so its caller takes this term out
)

var termKeys = []string{KeyState, KeyQueue, KeyJob, KeyLabel, KeyLane, KeySchedule, KeyBatch, KeyWorker, KeyMeta, KeySince, KeyUntil,
	KeyID, KeyCause}

// ParseTerms parses a search such as state:failed queue:media "no space left".
// Words without a selector are a text to search for. In double quotes, a word
// can have spaces and colons, and after a backslash a double quote.
func ParseTerms(text string) ([]Term, error) {
	terms, err := splitTerms(text)
	if err != nil {
		return nil, err
	}

	for _, t := range terms {
		near := humanize.Nearest(t.Key, termKeys)
		switch {
		case t.Key == "" || slices.Contains(termKeys, t.Key) && t.Value != "":
		case slices.Contains(termKeys, t.Key):
			return nil, invalid("search", "%s: needs a value", t.Key)
		case near != "":
			return nil, invalid("search", "unknown selector %q; did you mean %s:?", t.Key+":", near)
		default:
			return nil, invalid("search", "unknown selector %q (%s); quote a text that has a colon", t.Key+":", strings.Join(termKeys, " "))
		}
	}

	return terms, nil
}

// splitTerms splits a search into terms, which may be invalid.
func splitTerms(text string) ([]Term, error) {
	var terms []Term
	for rest := strings.TrimLeftFunc(text, unicode.IsSpace); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		word, colon, after, err := cutWord(rest)
		if err != nil {
			return nil, err
		}

		rest = after
		switch {
		case colon >= 0 && colon == len(word)-1 && !slices.Contains(termKeys, word[:colon]) &&
			humanize.Nearest(word[:colon], termKeys) == "":
			terms = addText(terms, word) // the word is part of a text, like "fatal:" in "fatal: no route"
		case colon >= 0:
			terms = append(terms, Term{word[:colon], word[colon+1:]})
		default:
			terms = addText(terms, word)
		}
	}

	return terms, nil
}

// addText adds a word to the text at the end of the terms, or begins a text.
func addText(terms []Term, word string) []Term {
	if n := len(terms); n > 0 && terms[n-1].Key == "" {
		terms[n-1].Value += " " + word
		return terms
	}
	return append(terms, Term{"", word})
}

// cutWord splits off the first word of a text and removes its quotes. colon is
// where the first colon outside quotes is, or -1 if no selector can stand
// before it.
func cutWord(text string) (word string, colon int, rest string, err error) {
	var b strings.Builder
	colon = -1
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			return b.String(), colon, text[i:], nil
		case !quoted && c == ':' && colon < 0 && isKey(b.String()) && i == b.Len():
			colon = b.Len()
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}

	if quoted {
		return "", -1, "", invalid("search", "a quotation mark is missing at the end")
	}

	return b.String(), colon, "", nil
}

// isKey reports whether a text can be a selector: lower-case letters and
// underscores. So C:\tmp and 12:30 do not begin with one.
func isKey(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// String returns the term in the form that ParseTerms accepts.
func (t Term) String() string {
	value := t.Value
	if value == "" || strings.ContainsAny(value, "\" \t\n\r") || strings.ContainsFunc(value, unicode.IsSpace) || t.Key == "" &&
		strings.Contains(value, ":") {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	if t.Key == "" {
		return value
	}
	return t.Key + ":" + value
}

// JoinTerms returns a search in the form that ParseTerms accepts.
func JoinTerms(terms []Term) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		list[i] = t.String()
	}
	return strings.Join(list, " ")
}

// ParseFilter converts a search to a filter. Times are relative to now, and in
// the given zone. A task must have one of the states, queues and jobs, but all
// the metadata. Of other selectors the last value counts, as on the command
// line. The error is a *FieldError that names the selector.
func ParseFilter(terms []Term, now time.Time, zone *time.Location) (jobs.Filter, error) {
	var f jobs.Filter
	for _, t := range terms {
		var err error
		switch t.Key {
		case "":
			f.Match = t.Value
		case KeyState:
			var states []jobs.State
			states, err = ParseStates(t.Value)
			f.States = append(f.States, states...)
		case KeyQueue:
			err = taskspec.ValidQueue(t.Value)
			f.Queues = append(f.Queues, t.Value)
		case KeyJob:
			err = taskspec.ValidJob(t.Value)
			f.Jobs = append(f.Jobs, t.Value)
		case KeyLabel:
			f.Label = t.Value
		case KeyLane:
			f.Lane = t.Value
		case KeySchedule:
			err = taskspec.ValidSchedule(t.Value)
			f.Schedule = t.Value
		case KeyBatch:
			if f.Batch, err = strconv.ParseInt(t.Value, 10, 64); err != nil || f.Batch < 1 {
				err = errors.New("invalid id of a batch")
			}
		case KeyWorker:
			f.Worker = t.Value
		case KeyMeta:
			key, text, found := strings.Cut(t.Value, "=")
			if err = taskspec.ValidMetadataKey(key); !found {
				err = errors.New("must be KEY=TEXT")
			}
			if f.Metadata == nil {
				f.Metadata = map[string]string{}
			}
			f.Metadata[key] = text
		case KeyID:
			var ids []int64
			ids, err = taskspec.ParseIDs(t.Value)
			f.IDs = append(f.IDs, ids...)
		case KeySince:
			f.Since, err = humanize.ParseWhen(t.Value, now, zone)
		case KeyUntil:
			f.Until, err = humanize.ParseWhen(t.Value, now, zone)
		default:
			err = fmt.Errorf("unknown selector")
		}

		if _, known := errors.AsType[*jobs.FieldError](err); err != nil && !known {
			return jobs.Filter{}, invalid(t.Key, "%q: %v", t.Value, err)
		} else if err != nil {
			return jobs.Filter{}, err
		}
	}

	slices.Sort(f.States)
	f.States = slices.Compact(f.States)
	return f, nil
}

// ParseStates parses states with commas between them. The words unfinished and
// finished stand for several.
func ParseStates(text string) ([]jobs.State, error) {
	var list []jobs.State
	for word := range strings.SplitSeq(text, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "unfinished":
			list = append(list, taskspec.Unfinished()...)
		case word == "finished":
			list = append(list, taskspec.Finished()...)
		case slices.Contains(taskspec.AllStates(), jobs.State(word)):
			list = append(list, jobs.State(word))
		default:
			if near := humanize.Nearest(word, stateWords()); near != "" {
				return nil, fmt.Errorf("unknown state %q; did you mean %s?", word, near)
			}
			return nil, fmt.Errorf("unknown state %q (%s, unfinished or finished)", word, join(taskspec.AllStates()))
		}
	}

	slices.Sort(list)
	return slices.Compact(list), nil
}

// stateWords returns all words that ParseStates accepts.
func stateWords() []string {
	words := []string{"unfinished", "finished"}
	for _, s := range taskspec.AllStates() {
		words = append(words, string(s))
	}
	return words
}

func join(list []jobs.State) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

func invalid(field, format string, args ...any) error {
	return &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)}
}

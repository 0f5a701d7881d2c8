package batch

import (
	"encoding/json"
	"fmt"

	"example.com/runner/internal/jsonscan"
	"example.com/runner/jobs"
)

// In a batch the lines may name each other: after and after_any hold the ids of earlier lines, any JSON text or number, and never
// ids of the database.

// lineNames are the id of a line, as JSON, and those of the lines that it waits for. An empty id is none.
type lineNames struct {
	id              string
	after, afterAny []string
}

// names reads id, after and after_any.
func (v *lineValues) names() lineNames {
	n := lineNames{after: v.nameList(v.keys["after"]), afterAny: v.nameList(v.keys["after_any"])}
	if raw := v.raw[keyID]; raw != nil {
		n.id, _ = lineName(raw) // anything else is nobody's name
	}
	return n
}

func (v *lineValues) nameList(k int) (names []string) {
	raw := v.raw[k]
	if raw == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		v.wrong(k, "is no array of ids")
		return nil
	}
	for _, one := range list {
		name, ok := lineName(one)
		if !ok {
			v.wrong(k, "%s is no text or number", shortened(one))
		}
		names = append(names, name)
	}
	if len(names) > jobs.MaxAfter {
		v.wrong(k, "%d tasks; at most %d", len(names), jobs.MaxAfter)
	}
	return names
}

// lineName makes an id one text, however it is written. The number 7 and the text "7" are two ids.
func lineName(raw []byte) (string, bool) {
	switch {
	case raw[0] == '"':
		text, err := jsonscan.Unquote(raw)
		return `"` + text, err == nil
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		return string(raw), true
	}
	return "", false
}

// lineIDs knows where the lines are that others name.
type lineIDs struct {
	wanted map[string]bool // the ids that are named somewhere; nil: any may be
	at     map[string]int  // the tasks with these ids, counted from 0
	n      int             // tasks so far
	done   []int64         // the ids in the database of the first of them
}

// want remembers the names that a line uses, on a first reading.
func (l *lineIDs) want(names lineNames) {
	for _, list := range [][]string{names.after, names.afterAny} {
		for _, name := range list {
			l.wanted[name] = true
		}
	}
}

// resolve makes a line's names positions of its Spec, and counts the line.
func (l *lineIDs) resolve(spec *jobs.Spec, names lineNames) error {
	for _, side := range []struct {
		field   string
		names   []string
		ids     *[]int64
		earlier *[]int
	}{{"after", names.after, &spec.After, &spec.Earlier}, {"after_any", names.afterAny, &spec.AfterAny, &spec.EarlierAny}} {
		for _, name := range side.names {
			at, known := l.at[name]
			switch {
			case !known:
				text := name
				if name[0] == '"' {
					text += `"`
				}
				return &jobs.FieldError{Field: side.field, Msg: fmt.Sprintf("%s is not the id of an earlier line", shortened([]byte(text)))}
			case at < len(l.done):
				*side.ids = append(*side.ids, l.done[at])
			default:
				*side.earlier = append(*side.earlier, at-len(l.done))
			}
		}
	}
	if names.id != "" && (l.wanted == nil || l.wanted[names.id]) {
		if _, double := l.at[names.id]; double {
			return &jobs.FieldError{Field: "id", Msg: "an earlier line has it, and others name it"}
		}
		l.at[names.id] = l.n
	}
	l.n++
	return nil
}

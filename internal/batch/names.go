package batch

import (
	"encoding/json"
	"fmt"

	"example.com/runner/internal/jsonscan"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The lines of a batch may refer to earlier lines. A line has an id in its key "id", and the keys "after" and "after_any" contain such ids.
// The ids are JSON strings or numbers. They are not the ids that tasks have in the database.

// lineNames contains the id of a line and the ids of the lines that it waits for, in the form that lineName returns. The id is empty if
// the line has no id.
type lineNames struct {
	id              string
	after, afterAny []string
}

// names returns the values of id, after and after_any.
func (v *lineValues) names() lineNames {
	n := lineNames{after: v.nameList(v.keys["after"]), afterAny: v.nameList(v.keys["after_any"])}
	if raw := v.raw[keyID]; raw != nil {
		n.id, _ = lineName(raw) // other lines cannot refer to an id that is neither a string nor a number
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
		v.wrong(k, "must be an array of ids")
		return nil
	}
	for _, one := range list {
		name, ok := lineName(one)
		if !ok {
			v.wrong(k, "%s must be a string or a number", shortened(one))
		}
		names = append(names, name)
	}
	if len(names) > taskspec.MaxAfter {
		v.wrong(k, "%d tasks; at most %d", len(names), taskspec.MaxAfter)
	}
	return names
}

// lineName returns the normal form of an id, so that two spellings of one id are equal. The number 7 and the text "7" are different ids.
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

// lineIDs maps the ids of lines to tasks.
type lineIDs struct {
	wanted map[string]bool // ids that other lines refer to; nil if these ids are not known, and then the maps keep every id
	at     map[string]int  // position of the task of each id, from 0
	n      int             // number of tasks so far
	done   []int64         // database ids of the first tasks, which are committed
}

// want records the ids that a line refers to, during the first pass.
func (l *lineIDs) want(names lineNames) {
	for _, list := range [][]string{names.after, names.afterAny} {
		for _, name := range list {
			l.wanted[name] = true
		}
	}
}

// resolve converts the ids that a line refers to into dependencies of its Spec, and counts the line.
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

package batch

import (
	"encoding/json"

	"example.com/runner/internal/taskjson"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A line of a batch may refer to earlier lines. The key "id" gives a line an id, and the keys "after" and "after_any" of a later line
// contain such ids. These ids are JSON strings or numbers. The database gives the tasks other ids.

// lineNames contains the id of a line and the ids of the lines that it waits for. lineName has converted them to text. The field "id" is
// empty if the line has no id.
type lineNames struct {
	id              string
	after, afterAny []string
}

// names returns the values of the keys id, after and after_any.
func (v *values) names() lineNames {
	n := lineNames{after: v.nameList("after"), afterAny: v.nameList("after_any")}
	if raw := v.members["id"]; raw != nil {
		n.id, _ = lineName(raw) // an id that is neither a string nor a number is ignored, because no line can refer to it
	}
	return n
}

func (v *values) nameList(key string) (names []string) {
	var list []json.RawMessage
	if raw := v.members[key]; raw != nil && json.Unmarshal(raw, &list) != nil {
		v.wrong(key, "must be an array of ids")
	}
	for _, one := range list {
		name, ok := lineName(one)
		if !ok {
			v.wrong(key, "%s must be a string or a number", taskjson.Short(one))
		}
		names = append(names, name)
	}
	if len(names) > taskspec.MaxAfter {
		v.wrong(key, "%d tasks; at most %d", len(names), taskspec.MaxAfter)
	}
	return names
}

// lineName converts an id to text. Two spellings of the same string give the same text. The number 7 and the string "7" give different
// texts.
func lineName(raw []byte) (string, bool) {
	switch {
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return `"` + text, err == nil
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		return string(raw), true
	}
	return "", false
}

// lineIDs maps the id of each line to its task.
type lineIDs struct {
	positions map[string]int // position of the line's task in the batch, from 0; twice if two lines have the id
	n         int            // number of lines that the method "resolve" has handled
}

const twice = -1

// resolve adds dependencies to the Spec of a line: the tasks of the lines that this line refers to. It also stores the id of this line, so
// that later lines can refer to it.
func (l *lineIDs) resolve(spec *jobs.Spec, names lineNames) error {
	var err error
	if spec.Earlier, err = l.earlier("after", names.after); err != nil {
		return err
	}
	if spec.EarlierAny, err = l.earlier("after_any", names.afterAny); err != nil {
		return err
	}
	if names.id != "" {
		if _, isKnown := l.positions[names.id]; isKnown {
			l.positions[names.id] = twice
		} else {
			l.positions[names.id] = l.n
		}
	}
	l.n++
	return nil
}

// earlier returns the positions of the tasks of earlier lines.
func (l *lineIDs) earlier(field string, names []string) (positions []int, err error) {
	for _, name := range names {
		at, known := l.positions[name]
		text := name
		if name[0] == '"' {
			text += `"`
		}
		switch {
		case !known:
			return nil, &jobs.FieldError{Field: field, Msg: taskjson.Short([]byte(text)) + " is not the id of an earlier line"}
		case at == twice:
			return nil, &jobs.FieldError{Field: field, Msg: taskjson.Short([]byte(text)) + " is the id of two earlier lines"}
		}
		positions = append(positions, at)
	}
	return positions, nil
}

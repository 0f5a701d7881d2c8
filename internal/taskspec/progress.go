package taskspec

import (
	"encoding/json"

	"example.com/runner/internal/taskjson"
	"example.com/runner/jobs"
)

// ProgressJSON returns the progress as tasks store it: an object with "done", "total" and "text". Values that are not known are null. For a
// nil Progress it returns nil.
func ProgressJSON(p *jobs.Progress) json.RawMessage {
	if p == nil {
		return nil
	}
	record := struct {
		Done  int64   `json:"done"`
		Total *int64  `json:"total"`
		Text  *string `json:"text"`
	}{Done: p.Done}
	if p.Total != 0 {
		record.Total = &p.Total
	}
	if p.Text != "" {
		record.Text = &p.Text
	}
	text, err := taskjson.Marshal(record)
	if err != nil {
		panic(err) // impossible, because numbers and text can always be marshalled
	}
	return text
}

package taskspec

import (
	"encoding/json"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// ProgressJSON returns the progress as JSON for the database: an object with "done", "total" and "text". Unknown values are null. For a nil
// Progress it returns nil.
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
	text, err := usercode.Marshal(record)
	if err != nil {
		panic(err) // cannot happen, because JSON can represent all numbers and texts
	}
	return text
}

package record

import "example.com/runner/jobs"

// Hooks is the JSON record of the hooks of a queue.
type Hooks struct {
	Queue      string  `json:"queue"`
	OnFailure  *string `json:"on_failure"`
	OnSuccess  *string `json:"on_success"`
	OnRecovery *string `json:"on_recovery"`
	OnOutput   *string `json:"on_output"`
}

// HooksRemoved is the record that "hook remove" prints for a queue.
type HooksRemoved struct {
	Queue   string `json:"queue"`
	Removed bool   `json:"removed"`
}

// NewHooks returns the JSON record of the hooks of a queue.
func NewHooks(queue string, h jobs.Hooks) Hooks {
	return Hooks{Queue: queue, OnFailure: Known(h.OnFailure), OnSuccess: Known(h.OnSuccess), OnRecovery: Known(h.OnRecovery),
		OnOutput: Known(h.OnOutput)}
}

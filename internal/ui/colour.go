package ui

import "example.com/runner/jobs"

// Colour is the number of a colour in a terminal escape sequence. The empty Colour means no colour.
type Colour string

const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	blue   Colour = "34"
	Dim    Colour = "2"
)

// Paint returns the text in a colour. If the stream does not show colours, it returns the text unchanged.
func (s Stream) Paint(c Colour, text string) string {
	if c == "" || !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// StateColour returns the colour of a task state.
func StateColour(state string) Colour {
	switch jobs.State(state) {
	case jobs.Running:
		return blue
	case jobs.Completed:
		return Green
	case jobs.Failed:
		return Red
	case jobs.Retrying:
		return Yellow
	case jobs.Scheduled, jobs.Cancelled:
		return Dim
	}
	return ""
}

package ui

import "example.com/runner/jobs"

// Colour is the number of a colour in a terminal's escape sequence; empty for
// none.
type Colour string

const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	blue   Colour = "34"
	Dim    Colour = "2"
)

// Paint returns the text in a colour, if the stream shows colours.
func (s Stream) Paint(c Colour, text string) string {
	if c == "" || !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// StateColour returns a task state's colour.
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

package term

import "example.com/runner/jobs"

// Colour is an SGR parameter. The empty value leaves the text uncoloured.
type Colour string

const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	blue   Colour = "34"
	Dim    Colour = "2"
)

// Paint returns the text in a colour, or unchanged if the stream has no colours.
func (s Stream) Paint(c Colour, text string) string {
	if c == "" || !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// StateColour returns the colour for the name of a state.
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

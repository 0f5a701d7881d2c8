// Package humanize is text for people and from people: ages, durations, times,
// sizes and counts, the lines of an output, and text that cannot control a
// terminal. The command line and the pages use it.
package humanize

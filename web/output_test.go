package web

import (
	"testing"

	"example.com/runner/test/testkit"
)

func TestOutputHasSixteenColoursOfTerminal(t *testing.T) {
	for sequence, want := range map[string]string{
		"31": "f1", "97;41": "f15 b1", "38;5;1": "f1", "38;5;12": "f12", "48;5;4": "b4", "1;4": "bo un",
		"38;5;208": "", "1;38;5;208;4": "bo un", "1;38;2;255;255;255;4": "bo un", "38:2:0:0:255": "", "38;5": "", "38;2": "", "48": "",
	} {
		var style textStyle
		style.set(sequence)
		testkit.Equal(t, "classes of "+sequence, style.class(), want)
	}
}

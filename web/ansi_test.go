package web

import (
	"testing"

	"example.com/runner/internal/testkit"
)

func TestManyColoursBecomeTheNearestOfSixteen(t *testing.T) {
	for sequence, want := range map[string]string{
		"38;5;1": "f1", "38;5;12": "f12", "38;5;208": "f3", "38;5;196": "f1", "38;5;22": "f2", "38;5;232": "f0", "38;5;255": "f15",
		"48;5;21": "b4", "38;2;10;200;30": "f2", "38;2;255;120;120": "f9", "38:2:0:0:255": "f4", "1;38;2;255;255;255;4": "f15 bo un",
		"38;5": "", "38;2": "f0", "38;5;999": "f15", "48": "",
	} {
		var style textStyle
		style.set(sequence)
		testkit.Equal(t, "classes of "+sequence, style.class(), want)
	}
}

package web

import "time"

// plot is a drawing of bars, which a template writes as SVG. Vertical
// places are in pixels and horizontal ones in percent, so that a drawing fits
// every window and its text isn't distorted.
type plot struct {
	Class, Label string
	Height       int
	Scale        []mark // labels of the vertical axis
	ScaleWidth   int
	Lines        []int  // y of the horizontal lines
	Off          []rect // times for which there is no data
	Axis         int    // y of the time axis
	Ticks        []mark // labels of the time axis
	Bars         []bar
}

// mark is a label of an axis.
type mark struct {
	X           float64
	Y           int
	Text, Class string
}

type rect struct {
	Class      string
	X, Y, W, H float64
}

// bar is a link. Its text is its title, and shows above the plot while the bar
// has the focus.
type bar struct {
	Link, Text string
	Rects      []rect
}

// plotTop is the space above a plot, for the text of the bar with the focus.
const plotTop = 16

// Last returns the index of the last bar. The tab key reaches this bar only,
// and the arrow keys move from there.
func (v plot) Last() int { return len(v.Bars) - 1 }

// column returns a bar in column i of n. It stands at the height below in a
// plot whose first and last y are top and top+size. The whole column is a link,
// which is easier to hit than a low bar.
func column(i, n int, class, link, text string, top, size, below, height float64) bar {
	width := 100 / float64(n)
	x := float64(i) * width
	return bar{link, text, []rect{
		{"hit", x, top, width, size},
		{class, x + width*0.1, top + size - below - height, width * 0.8, height},
	}}
}

// timeMarks returns the labels of a time axis, at round times in the zone of
// its begin.
func timeMarks(begin time.Time, length, step time.Duration) (list []mark) {
	format := "15:04"
	if step >= 24*time.Hour {
		format = "Mon 2"
	}

	for at := time.Date(begin.Year(), begin.Month(), begin.Day(), 0, 0, 0, 0, begin.Location()); ; at = at.Add(step) {
		x := float64(at.Sub(begin)) / float64(length) * 100
		switch {
		case x >= 98: // the edge would cut off a label here, and before 2
			return list
		case x < 2:
			continue
		}

		class := ""
		if len(list)%2 == 1 {
			class = "c5"
		}
		list = append(list, mark{X: x, Text: at.Format(format), Class: class})
	}
}

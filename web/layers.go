package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/internal/admin"
)

// dependencyGraph arranges tasks in layers from left to right. Each task is to the right of the tasks that it depends on. If minBundle or
// more tasks of a layer have the same dependencies and the same dependents, they become one item.
type dependencyGraph struct {
	layers        [][]*graphItem
	Lines         []*graphLine
	Width, Height float64 // in pixels
	Missing       int     // number of lines that are not drawn
}

// maxSegments is the maximum number of parts of lines in a graph. A line has a part for each layer that it crosses.
const maxSegments = 800

// graphItem is a task, a frame with several tasks, or a point of a line that crosses a layer.
type graphItem struct {
	ids        []int64 // ids of the tasks; empty if the item is a point where a line crosses a layer
	layer      int
	before     []*graphItem // items from which lines lead to this item
	behind     []*graphItem // items to which lines lead from this item
	X, Y, W, H float64
	right      float64 // x of the right edge of the layer of this item
	wanted     float64 // mean y of the items at the other ends of the lines of this item; sortLayer sorts by it
}

// graphLine is the line between two items, with the points between them.
type graphLine struct {
	items []*graphItem
	Any   bool
}

func newGraph(ids []int64, links []admin.DependencyLink, current int64) *dependencyGraph {
	ids = slices.Sorted(slices.Values(ids))
	before, behind := map[int64][]admin.DependencyLink{}, map[int64][]admin.DependencyLink{}
	for _, l := range links {
		before[l.Task] = append(before[l.Task], l)
		behind[l.On] = append(behind[l.On], l)
	}
	// A task depends only on tasks with lower ids. So this order visits the dependencies of a task before the task.
	layer := map[int64]int{}
	for _, id := range ids {
		for _, l := range before[id] {
			layer[id] = max(layer[id], layer[l.On]+1)
		}
	}
	for _, id := range slices.Backward(ids) { // tasks without dependencies move to the layer before their first dependent
		if len(before[id]) == 0 && len(behind[id]) > 0 {
			layer[id] = layer[slices.MinFunc(behind[id], func(a, b admin.DependencyLink) int {
				return cmp.Compare(layer[a.Task], layer[b.Task])
			}).Task] - 1
		}
	}
	g := &dependencyGraph{}
	items := map[int64]*graphItem{}
	groups := map[string][]int64{}
	group := func(id int64) string { return ends(before[id], behind[id], layer[id]) }
	for _, id := range ids {
		if id != current {
			groups[group(id)] = append(groups[group(id)], id)
		}
	}
	for _, id := range ids {
		same := groups[group(id)]
		switch {
		case id == current || len(same) < minBundle:
			items[id] = g.add([]int64{id}, layer[id])
		case id == same[0]:
			item := g.add(same, layer[id])
			for _, id := range same {
				items[id] = item
			}
		}
	}
	g.connect(ids, before, items)
	return g
}

// ends returns a text that is equal for tasks of a layer with the same
// dependencies and the same dependents.
func ends(before, behind []admin.DependencyLink, layer int) string {
	list := []string{fmt.Sprint(layer)}
	for _, l := range before {
		list = append(list, fmt.Sprint("<", l.On, l.Any))
	}
	for _, l := range behind {
		list = append(list, fmt.Sprint(">", l.Task, l.Any))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// add adds an item for tasks of a layer, or a point of a line if there are none.
func (g *dependencyGraph) add(ids []int64, layer int) *graphItem {
	i := &graphItem{ids: ids, layer: layer, W: nodeWidth, H: nodeHeight}
	switch n := len(ids); {
	case n == 0:
		i.H = 2
	case n > 1:
		columns := (n + bundleHeight - 1) / bundleHeight
		i.W = float64(max(columns*cellWidth+4, nodeWidth))
		i.H = float64(22 + min(n, bundleHeight)*cellHeight)
	}
	for len(g.layers) <= layer {
		g.layers = append(g.layers, nil)
	}
	g.layers[layer] = append(g.layers[layer], i)
	return i
}

// connect adds a line from each item to each item that depends on it. In each layer that a line crosses, it adds a point, which is an item
// without a task. If the lines have too many segments, connect leaves out the longest lines.
func (g *dependencyGraph) connect(ids []int64, before map[int64][]admin.DependencyLink, items map[int64]*graphItem) {
	type arrow struct {
		from, to *graphItem
		any      bool
	}
	seen := map[arrow]bool{}
	var list []arrow
	for _, id := range ids {
		for _, l := range before[id] {
			if e := (arrow{items[l.On], items[id], l.Any}); !seen[e] {
				seen[e] = true
				list = append(list, e)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b arrow) int { return cmp.Compare(a.to.layer-a.from.layer, b.to.layer-b.from.layer) })
	segments := 0
	for _, e := range list {
		if segments += e.to.layer - e.from.layer; segments > maxSegments {
			g.Missing++
			continue
		}
		line := &graphLine{items: []*graphItem{e.from}, Any: e.any}
		for n := e.from.layer + 1; n < e.to.layer; n++ {
			line.items = append(line.items, g.add(nil, n))
		}
		line.items = append(line.items, e.to)
		for i, item := range line.items[1:] {
			item.before = append(item.before, line.items[i])
			line.items[i].behind = append(line.items[i].behind, item)
		}
		g.Lines = append(g.Lines, line)
	}
}

// arrange sets the place of each item. It sorts each layer so that few lines cross: each item moves to the mean position of the items at
// the other ends of its lines.
func (g *dependencyGraph) arrange() {
	for range 3 {
		for _, layer := range g.layers {
			sortLayer(layer, func(i *graphItem) []*graphItem { return i.before })
		}
		for _, layer := range slices.Backward(g.layers) {
			sortLayer(layer, func(i *graphItem) []*graphItem { return i.behind })
		}
	}
	x := float64(graphMargin)
	for _, layer := range g.layers {
		width := 0.0
		for _, i := range layer {
			width = max(width, i.W)
		}
		for _, i := range layer {
			i.X, i.right = x, x+width
		}
		x += width + layerGap
		g.Height = max(g.Height, stack(layer)+2*graphMargin)
	}
	g.Width = x - layerGap + graphMargin
	for _, layer := range g.layers {
		for _, i := range layer {
			i.Y += g.Height / 2
		}
	}
}

// stack places the items of a layer one below the other, so that the middle of the layer is at y = 0. It returns the height of the layer.
func stack(layer []*graphItem) float64 {
	height := -float64(graphGap)
	for _, i := range layer {
		height += i.H + graphGap
	}
	y := -height / 2
	for _, i := range layer {
		i.Y = y
		y += i.H + graphGap
	}
	return height
}

// sortLayer sorts the items of a layer. The function "others" returns the items at the other ends of the lines of an item. The mean
// position of these items decides the place of the item.
func sortLayer(layer []*graphItem, others func(*graphItem) []*graphItem) {
	stack(layer)
	for _, i := range layer {
		i.wanted = i.middle()
		if list := others(i); len(list) > 0 {
			i.wanted = 0
			for _, other := range list {
				i.wanted += other.middle() / float64(len(list))
			}
		}
	}
	slices.SortStableFunc(layer, func(a, b *graphItem) int { return cmp.Compare(a.wanted, b.wanted) })
	stack(layer)
}

// N returns the number of tasks.
func (i *graphItem) N() int { return len(i.ids) }

func (i *graphItem) middle() float64 { return i.Y + i.H/2 }

// Path returns the line as a path of SVG. The path first goes straight from the item to the right edge of its layer, because a frame in the
// layer may be wider than the item. From this edge it curves to the next layer.
func (l *graphLine) Path() string {
	var b strings.Builder
	last := l.items[0]
	fmt.Fprintf(&b, "M%.0f %.0fH%.0f", last.X+last.W, last.middle(), last.right)
	for _, i := range l.items[1:] {
		half := (last.right + i.X) / 2
		fmt.Fprintf(&b, "C%.0f %.0f %.0f %.0f %.0f %.0f", half, last.middle(), half, i.middle(), i.X, i.middle())
		if len(i.ids) == 0 {
			fmt.Fprintf(&b, "H%.0f", i.right)
		}
		last = i
	}
	return b.String()
}

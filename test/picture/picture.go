// Package picture draws the packages of a program and their imports as an SVG.
// Packages are boxes in rows. An arrow leads from a package down to each
// package that it imports.
package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	boxHeight = 30
	rowHeight = 66
	gap       = 14  // space between two boxes in a row
	lane      = 10  // width that an arrow needs when it passes a row
	letter    = 7.2 // width of a letter of the font
	margin    = 12
)

// node is a position in a row: a package, or an arrow that passes the row on
// its way down.
type node struct {
	name   string
	row    int
	x      float64 // center
	width  float64
	above  []*node
	below  []*node
	passes bool
}

// SVG draws packages and their imports. If A imports B and C, and B needs C too
// (perhaps through other packages), there is no arrow from A to C. class
// returns a package's CSS class.
func SVG(imports map[string][]string, class func(name string) string) string {
	rows := layers(imports)
	for range 24 {
		order(rows)
	}
	place(rows)
	return draw(rows, class)
}

// layers puts the packages into rows: a package is in a row below all packages
// that import it. If an arrow passes rows on its way, layers adds a node for it
// to each of these rows.
func layers(imports map[string][]string) [][]*node {
	nodes := map[string]*node{}
	for name := range imports {
		nodes[name] = &node{name: name, width: float64(len(name))*letter + 18}
	}

	names := slices.Sorted(maps.Keys(imports))
	for changed := true; changed; {
		changed = false
		for _, name := range names {
			for _, to := range imports[name] {
				if n := nodes[to]; n.row <= nodes[name].row {
					n.row, changed = nodes[name].row+1, true
				}
			}
		}
	}

	var rows [][]*node
	add := func(n *node) {
		for len(rows) <= n.row {
			rows = append(rows, nil)
		}
		rows[n.row] = append(rows[n.row], n)
	}
	for _, name := range names {
		add(nodes[name])
	}

	for _, name := range names {
		for _, to := range reduced(imports, name) {
			from := nodes[name]
			for row := from.row + 1; row < nodes[to].row; row++ {
				point := &node{row: row, width: lane, passes: true}
				link(from, point)
				add(point)
				from = point
			}

			link(from, nodes[to])
		}
	}

	return rows
}

func link(above, below *node) {
	above.below = append(above.below, below)
	below.above = append(below.above, above)
}

// reduced returns the imports of a package that the picture shows as arrows. It
// leaves out an import that the package also reaches through another of its
// imports.
func reduced(imports map[string][]string, name string) []string {
	list := slices.Sorted(slices.Values(imports[name]))
	return slices.DeleteFunc(slices.Clone(list), func(to string) bool {
		return slices.ContainsFunc(list, func(other string) bool { return other != to && reaches(imports, other, to) })
	})
}

func reaches(imports map[string][]string, from, to string) bool {
	return from == to || slices.ContainsFunc(imports[from], func(next string) bool { return reaches(imports, next, to) })
}

// order sorts the nodes in each row. It puts a node near its neighbours in
// other rows, so that few arrows cross each other.
func order(rows [][]*node) {
	for _, row := range rows {
		pack(row)
	}

	for _, row := range rows[1:] {
		sortBy(row, func(n *node) []*node { return n.above })
	}

	for i := len(rows) - 2; i >= 0; i-- {
		sortBy(rows[i], func(n *node) []*node { return n.below })
	}
}

// pack puts the nodes of a row side by side, with their centre at 0.
func pack(row []*node) {
	total := -float64(gap)
	for _, n := range row {
		total += n.width + gap
	}

	x := -total / 2
	for _, n := range row {
		n.x = x + n.width/2
		x += n.width + gap
	}
}

func sortBy(row []*node, neighbours func(*node) []*node) {
	slices.SortStableFunc(row, func(a, b *node) int { return cmp.Compare(mean(a, neighbours(a)), mean(b, neighbours(b))) })
	pack(row)
}

// mean returns the average position of the neighbours of a node. For a node
// without neighbours it returns the position of the node.
func mean(n *node, of []*node) float64 {
	if len(of) == 0 {
		return n.x
	}

	sum := 0.0
	for _, other := range of {
		sum += other.x
	}

	return sum / float64(len(of))
}

// place moves each node towards the mean of its neighbours, as far as there is
// space in the row.
func place(rows [][]*node) {
	for range 30 {
		for _, row := range rows {
			for i, n := range row {
				want := mean(n, slices.Concat(n.above, n.below))
				if i > 0 {
					want = max(want, row[i-1].x+(row[i-1].width+n.width)/2+gap)
				}
				if i < len(row)-1 {
					want = min(want, row[i+1].x-(row[i+1].width+n.width)/2-gap)
				}
				n.x = want
			}
		}
	}
}

const style = `<style>
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; text-anchor: middle; fill: #1f2328 }
rect { stroke-width: 1.2; rx: 5 }
path { fill: none; stroke: #8b949e; stroke-width: 1.2 }
.program { fill: #ffe8b3; stroke: #bf8700 }
.public { fill: #ccebd3; stroke: #2da44e }
.internal { fill: #dbe9fb; stroke: #5b8fd0 }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
	`<path d="M0 0 8 4 0 8z" style="fill:#8b949e;stroke:none"/></marker></defs>
`

func draw(rows [][]*node, class func(name string) string) string {
	left, right := 0.0, 0.0
	for _, n := range slices.Concat(rows...) {
		left, right = min(left, n.x-n.width/2), max(right, n.x+n.width/2)
	}

	var lines, boxes strings.Builder
	for _, n := range slices.Concat(rows...) {
		n.x += margin - left
	}

	for _, n := range slices.Concat(rows...) {
		if n.passes {
			continue
		}
		fmt.Fprintf(&boxes, "<rect class=%q x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\"/><text x=\"%.0f\" y=\"%.0f\">%s</text>\n",
			class(n.name), n.x-n.width/2, n.top(), n.width, boxHeight, n.x, n.top()+19, n.name)
		for _, next := range n.below {
			lines.WriteString(arrow(n, next))
		}
	}

	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" role=\"img\">\n<title>packages and their "+
		"imports</title>\n",
		right-left+2*margin, (len(rows)-1)*rowHeight+boxHeight+2*margin) + style + lines.String() + boxes.String() + "</svg>\n"
}

func (n *node) top() float64 { return float64(n.row*rowHeight + margin) }

// arrow returns the SVG path from a package to an imported package, through the
// points in the rows between them.
func arrow(from, to *node) string {
	path := fmt.Sprintf("<path marker-end=\"url(#head)\" d=\"M%.0f %.0f", from.x, from.top()+boxHeight)
	for {
		middle := (from.top() + boxHeight + to.top()) / 2
		path += fmt.Sprintf(" C%.0f %.0f %.0f %.0f %.0f %.0f", from.x, middle, to.x, middle, to.x, to.top())
		if !to.passes {
			return path + "\"/>\n"
		}
		path += fmt.Sprintf(" V%.0f", to.top()+boxHeight)
		from, to = to, to.below[0]
	}
}

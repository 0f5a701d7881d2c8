package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

const (
	maxDrawn   = 200  // maximum number of tasks in the drawing of dependencies
	maxColumn  = 12   // maximum number of tasks in a column of the drawing; one more node stands for the others
	maxLinks   = 5000 // maximum number of dependencies that the drawing reads
	maxArrows  = 400  // maximum number of lines in the drawing
	maxRelated = 1000 // maximum number of tasks that the page reads in each direction
	nameInNode = 24   // maximum number of characters of an id and a name in the drawing
)

// relatedTasks are the tasks that a task depends on, directly or through other
// tasks, and those that depend on it, the nearest of which are drawn.
type relatedTasks struct {
	page
	Task     jobs.Task
	names    map[int64]jobs.Task // the drawn tasks
	Graph    *graph
	NotDrawn int
	More     bool   // whether there may be further tasks, which the page hasn't read
	Summary  string // how many of the drawn tasks are in each state
	Link     string // URL of the list of the drawn tasks
}

// relatedOf reads and draws the dependencies of a task. It returns nil if there
// are none.
func (h *handler) relatedOf(ctx context.Context, p page, t jobs.Task) (*relatedTasks, error) {
	v := &relatedTasks{page: p, Task: t}
	on, by, more, err := db.Of(h.r).Related(ctx, t.ID, maxRelated)
	before, behind := slices.Concat(on...), slices.Concat(by...) // the nearest come first
	n := len(before) + len(behind)
	if err != nil || n == 0 {
		return nil, err
	}

	room := maxDrawn - 1
	before = before[:min(len(before), max(room/2, room-len(behind)))]
	behind = behind[:min(len(behind), room-len(before))]
	ids := slices.Concat(before, []int64{t.ID}, behind)
	if v.names, err = db.Of(h.r).Names(ctx, ids); err != nil {
		return nil, err
	}

	links, err := db.Of(h.r).DependenciesAmong(ctx, ids, maxLinks)
	if err != nil {
		return nil, err
	}

	counts := map[jobs.State]int{}
	for _, id := range ids {
		counts[v.StateOf(id)]++
	}

	v.NotDrawn, v.More = n+1-len(ids), more
	v.Summary = fmt.Sprintf("%d tasks: %s", len(ids), stateCounts(counts))
	v.Link = v.list(ids)
	v.Graph = v.newGraph(ids, links)
	return v, nil
}

// StateOf returns the state of a task. A task that no longer exists is deleted.
func (v *relatedTasks) StateOf(id int64) jobs.State { return cmp.Or(v.names[id].State, "deleted") }

// list returns the URL of the list of some tasks.
func (p page) list(ids []int64) string {
	return p.Find(search.KeyID, strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]"))
}

// stateCounts returns the numbers of tasks or attempts by state as text.
func stateCounts(counts map[jobs.State]int) string {
	var parts []string
	for _, s := range append(taskspec.AllStates(), taskspec.Snoozed, "deleted") {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", humanize.Count(int64(counts[s])), s))
		}
	}
	return strings.Join(parts, ", ")
}

// The sizes of the drawing in pixels. The template has the sizes of a node,
// too.
const (
	nodeWidth, nodeHeight = 164, 40
	rowGap                = 12 // vertical space between two nodes of a column
	columnGap             = 44
	graphMargin           = 20
	arcHeight             = 52
)

// graph is the drawing: columns of nodes, from left to right.
type graph struct {
	Nodes         []*node
	Lines         []line
	Width, Height int
	Missing       int // number of lines that aren't drawn
}

// node is a task, or stands for the last tasks of a long column.
type node struct {
	ID          int64
	State       jobs.State
	Name, Short string // Short is the id and the begin of the name
	Word        string // the state with its symbol
	More        int    // number of the tasks that it stands for; 0 for a single task
	Link        string // URL of their list
	X, Y        int
	column      int
}

// line leads from a task to a task that waits for it.
type line struct {
	from, to *node
	Any      bool // whether the task waits for any outcome
}

// newGraph puts each task into the first column to the right of the tasks that
// it waits for. In its column it stands near them, so that few lines cross.
func (v *relatedTasks) newGraph(ids []int64, links []db.DependencyLink) *graph {
	g := &graph{}
	column, dependencies := map[int64]int{}, map[int64][]int64{}
	// A task depends only on tasks with lower ids. So in this order the column
	// of a dependency is known.
	slices.SortFunc(links, func(a, b db.DependencyLink) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.On, b.On))
	})
	for _, l := range links {
		column[l.Task] = max(column[l.Task], column[l.On]+1)
		dependencies[l.Task] = append(dependencies[l.Task], l.On)
	}

	var columns [][]int64
	for _, id := range slices.Sorted(slices.Values(ids)) {
		for len(columns) <= column[id] {
			columns = append(columns, nil)
		}
		columns[column[id]] = append(columns[column[id]], id)
	}

	nodes := map[int64]*node{}
	for i, list := range columns {
		near := map[int64]float64{}
		for _, id := range list {
			for _, on := range dependencies[id] {
				near[id] += float64(nodes[on].Y) / float64(len(dependencies[id]))
			}
		}

		slices.SortStableFunc(list, func(a, b int64) int { return cmp.Compare(near[a], near[b]) })
		g.addColumn(v, i, list, nodes)
	}

	for _, n := range g.Nodes {
		n.Y += g.Height / 2
	}

	g.Width = len(columns)*(nodeWidth+columnGap) - columnGap + 2*graphMargin
	g.connect(links, nodes)
	return g
}

// addColumn adds the nodes of a column, with its middle at y = 0.
func (g *graph) addColumn(v *relatedTasks, column int, ids []int64, nodes map[int64]*node) {
	rows := min(len(ids), maxColumn+1)
	height := rows*(nodeHeight+rowGap) - rowGap
	g.Height = max(g.Height, height+2*graphMargin)
	for i, id := range ids {
		if i > maxColumn {
			nodes[id] = nodes[ids[maxColumn]]
			continue
		}

		n := &node{
			ID:     id,
			State:  v.StateOf(id),
			Word:   v.Symbol(v.StateOf(id)) + " " + string(v.StateOf(id)),
			X:      graphMargin + column*(nodeWidth+columnGap),
			Y:      i*(nodeHeight+rowGap) - height/2,
			column: column,
		}
		if t, ok := v.names[id]; ok {
			n.Name = v.ShortJob(t)
		}

		n.Short = humanize.Cut(fmt.Sprintf("%d %s", id, n.Name), nameInNode)
		if i == maxColumn {
			n.More, n.Link = len(ids)-maxColumn, v.list(ids[maxColumn:])
		}

		nodes[id] = n
		g.Nodes = append(g.Nodes, n)
	}
}

// connect adds the lines. It leaves out the longest ones if there are too many.
func (g *graph) connect(links []db.DependencyLink, nodes map[int64]*node) {
	seen := map[line]bool{}
	for _, l := range links {
		if one := (line{nodes[l.On], nodes[l.Task], l.Any}); !seen[one] {
			seen[one] = true
			g.Lines = append(g.Lines, one)
		}
	}

	length := func(l line) int { return l.to.column - l.from.column }
	slices.SortStableFunc(g.Lines, func(a, b line) int { return cmp.Compare(length(a), length(b)) })
	g.Missing = max(len(g.Lines)-maxArrows, 0)
	g.Lines = g.Lines[:len(g.Lines)-g.Missing]
}

// Path returns the line as a path of SVG. A line that crosses a column goes in
// an arc, because a straight one would seem to end at the tasks on its way.
func (l line) Path() string {
	x, y, toY, arc := l.from.X+nodeWidth, l.from.Y+nodeHeight/2, l.to.Y+nodeHeight/2, 0
	if l.to.column > l.from.column+1 {
		arc = arcHeight
	}
	half := (x + l.to.X) / 2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, y, half, y-arc, half, toY-arc, l.to.X, toY)
}

package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

const (
	maxDrawn     = 200  // maximum number of tasks in the drawing of dependencies
	maxLinks     = 5000 // maximum number of dependencies in the drawing
	maxRelated   = 1000 // maximum number of tasks in the list of dependencies, in each direction
	nameInNode   = 24   // maximum number of characters of an id and a name in the drawing
	minBundle    = 4    // minimum number of tasks in a frame, which all have the same dependencies and dependents
	bundleHeight = 24   // a frame around more tasks than this has several columns
)

// relatedTasks are the tasks that a task depends on, directly or through other tasks, and those that depend on it.
type relatedTasks struct {
	page
	Task           jobs.Task
	before, behind [][]int64 // ids of the dependencies and of the dependents, grouped by their distance from the task of the page
	names          map[int64]jobs.Task
	N              int              // number of tasks, without the task of the page
	More           bool             // whether there may be more than N tasks
	Graph          *dependencyGraph // drawing; nil on the page that lists the dependencies
	NotDrawn       int              // number of tasks that are not in the drawing
	Summary        string           // how many of the drawn tasks are in each state
	Link           string           // URL of the page that lists the dependencies
}

// relatedOf reads the dependencies of a task. It returns nil if there are none.
func (h *handler) relatedOf(ctx context.Context, p page, t jobs.Task) (*relatedTasks, error) {
	v := &relatedTasks{page: p, Task: t, Link: fmt.Sprintf("%s/tasks/%d/dependencies", p.Base, t.ID)}
	var err error
	if v.before, v.behind, v.More, err = admin.Store(h.r).Related(ctx, t.ID, maxRelated); err != nil {
		return nil, err
	}
	for _, ids := range slices.Concat(v.before, v.behind) {
		v.N += len(ids)
	}
	if v.N == 0 {
		return nil, nil
	}
	return v, nil
}

// read reads the names of tasks.
func (v *relatedTasks) read(ctx context.Context, h *handler, ids []int64) (err error) {
	v.names, err = admin.Store(h.r).Names(ctx, ids)
	return err
}

// Name returns the name of a task.
func (v *relatedTasks) Name(id int64) string {
	if t, ok := v.names[id]; ok {
		return v.ShortJob(t)
	}
	return ""
}

// StateOf returns the state of a task, or "deleted" if the task no longer exists.
func (v *relatedTasks) StateOf(id int64) jobs.State { return cmp.Or(v.names[id].State, "deleted") }

// drawn returns the ids of the tasks of the drawing: the task itself and the nearest ones in both directions.
func (v *relatedTasks) drawn() []int64 {
	before, behind := slices.Concat(v.before...), slices.Concat(v.behind...)
	room := maxDrawn - 1
	fair := max(room/2, room-len(behind))
	before = before[:min(len(before), fair)]
	behind = behind[:min(len(behind), room-len(before))]
	return slices.Concat(before, []int64{v.Task.ID}, behind)
}

// draw makes the drawing and its summary.
func (v *relatedTasks) draw(ctx context.Context, h *handler) error {
	ids := v.drawn()
	if err := v.read(ctx, h, ids); err != nil {
		return err
	}
	links, err := admin.Store(h.r).DependenciesAmong(ctx, ids, maxLinks)
	if err != nil {
		return err
	}
	counts := map[jobs.State]int{}
	for _, id := range ids {
		counts[v.StateOf(id)]++
	}
	var parts []string
	for _, s := range append(jobs.States(), "deleted") {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	v.NotDrawn = v.N + 1 - len(ids)
	v.Summary = fmt.Sprintf("%d tasks: %s", len(ids), strings.Join(parts, ", "))
	v.Graph = newGraph(ids, links, v.Task.ID)
	v.Graph.arrange()
	return nil
}

// distance is a row of the list of dependencies: the tasks at one distance from the task of the page.
type distance struct {
	Name string
	IDs  []int64
}

// Distances returns the rows of the list: first the dependencies, of which the most distant ones come first, then the task of the page, and
// then its dependents.
func (v *relatedTasks) Distances() (list []distance) {
	add := func(steps [][]int64, direct, far string) (part []distance) {
		for i, ids := range steps {
			name := direct
			if i > 0 {
				name = fmt.Sprintf(far, i+1)
			}
			part = append(part, distance{name, ids})
		}
		return part
	}
	list = add(v.before, "Depends on", "Depends on, over %d dependencies")
	slices.Reverse(list)
	list = append(list, distance{"This task", []int64{v.Task.ID}})
	return append(list, add(v.behind, "Unblocks", "Unblocks, over %d dependencies")...)
}

// dependencies is the page with the list of the dependencies of a task.
func (h *handler) dependencies(ctx context.Context, req *http.Request) (string, view, error) {
	t, err := h.getTask(ctx, req)
	if err != nil {
		return "", nil, err
	}
	p := h.newPage(req, fmt.Sprintf("Dependencies of task %d", t.ID), "tasks")
	v, err := h.relatedOf(ctx, p, t)
	if err != nil {
		return "", nil, err
	}
	if v == nil {
		v = &relatedTasks{page: p, Task: t}
	}
	return "dependencies", v, v.read(ctx, h, slices.Concat(slices.Concat(v.before...), []int64{t.ID}, slices.Concat(v.behind...)))
}

// The sizes of the drawing in pixels.
const (
	nodeWidth, nodeHeight = 164, 40
	cellWidth, cellHeight = 132, 28 // size of a task that is drawn in a frame with other tasks
	graphGap              = 12      // vertical space between two items of a layer
	layerGap              = 44      // horizontal space between two layers
	graphMargin           = 6
)

// node is a task in the drawing.
type node struct {
	ID          int64
	State       jobs.State
	Name, Short string // Short is the id and the begin of the name
	Word        string // the state with its symbol
	IsSmall     bool
	X, Y, W, H  int
}

// Nodes returns the tasks of the drawing, in the order of the layers.
func (v *relatedTasks) Nodes() (list []node) {
	for _, item := range slices.Concat(v.Graph.layers...) {
		for i, id := range item.ids {
			n := node{
				ID:      id,
				State:   v.StateOf(id),
				Name:    v.Name(id),
				Word:    v.Symbol(v.StateOf(id)) + " " + string(v.StateOf(id)),
				IsSmall: len(item.ids) > 1,
				X:       int(item.X),
				Y:       int(item.Y),
				W:       int(item.W),
				H:       int(item.H),
			}
			n.Short = humanize.Cut(fmt.Sprintf("%d %s", id, n.Name), nameInNode)
			if n.IsSmall {
				n.X += 4 + i/bundleHeight*cellWidth
				n.Y += 22 + i%bundleHeight*cellHeight
				n.W, n.H = cellWidth-4, cellHeight-4
			}
			list = append(list, n)
		}
	}
	return list
}

// Frames returns the items with several tasks.
func (g *dependencyGraph) Frames() []*graphItem {
	return slices.DeleteFunc(slices.Concat(g.layers...), func(i *graphItem) bool { return len(i.ids) < 2 })
}

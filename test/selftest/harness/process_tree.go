package harness

import "slices"

// guardianName is the process name of guardians.
const guardianName = "guardian"

// tree lists all processes at one moment. It groups them by their parents.
type tree struct {
	children map[int][]int
	names    map[int]string
}

func readTree() tree {
	t := tree{map[int][]int{}, map[int]string{}}
	for _, pid := range allPIDs() {
		if parent, name := parentOf(pid); parent != 0 {
			t.children[parent] = append(t.children[parent], pid)
			t.names[pid] = name
		}
	}

	return t
}

// guardians lists the guardians of a worker, which are its direct children. A
// command also has the name guardian until its exec, but it is a child of a
// guardian and not of the worker.
func (t tree) guardians(worker int) (list []int) {
	for _, pid := range t.children[worker] {
		if t.names[pid] == guardianName {
			list = append(list, pid)
		}
	}
	return list
}

// commands lists the descendants of a worker that aren't its guardians.
func (t tree) commands(worker int) (list []int) {
	guardians := t.guardians(worker)
	for _, pid := range t.descendants(worker) {
		if !slices.Contains(guardians, pid) {
			list = append(list, pid)
		}
	}
	return list
}

// descendants lists all descendants of a process.
func (t tree) descendants(of int) (list []int) {
	for _, pid := range t.children[of] {
		list = append(append(list, pid), t.descendants(pid)...)
	}
	return list
}

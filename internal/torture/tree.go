package torture

// guardianName is what guardians call themselves.
const guardianName = "guardian"

// tree is all processes at a moment, by their parents.
type tree struct {
	children map[int][]int
	names    map[int]string
}

func readTree() tree {
	t := tree{map[int][]int{}, map[int]string{}}
	for _, pid := range processes() {
		if parent, name := parentOf(pid); parent != 0 {
			t.children[parent] = append(t.children[parent], pid)
			t.names[pid] = name
		}
	}
	return t
}

// guardians lists the guardians of a worker.
func (t tree) guardians(worker int) (list []int) {
	for _, pid := range t.children[worker] {
		if t.names[pid] == guardianName {
			list = append(append(list, pid), t.guardians(pid)...)
		}
	}
	return list
}

// commands lists the processes of commands below a worker or a guardian, which are all of them that are no guardians.
func (t tree) commands(of int) (list []int) {
	for _, pid := range t.children[of] {
		if t.names[pid] != guardianName {
			list = append(list, pid)
		}
		list = append(list, t.commands(pid)...)
	}
	return list
}

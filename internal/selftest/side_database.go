package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Some acts can cost a database its content if the product does not notice them. They get databases of their own beside that of the run,
// so that a loss there does not spoil its histories. The demand is the same: every acknowledged task is there. The product may refuse,
// and every process that has the database open may end.

// boundRole enqueues through a bind mount of the database file.
const boundName = "bound"

const (
	sideAcks = 3                // enqueues before somebody touches the files
	sideOpen = 10 * time.Second // for them
)

// bindMount opens a database by a bind mount of its file, as a container does that is given the single file, beside processes that have
// it open by its own path.
func (n *nemesis) bindMount() bool {
	if os.Geteuid() != 0 {
		return false
	}
	return n.withSideDatabase(func(c *processes) {
		dir := filepath.Join(c.dir, boundName)
		if os.Mkdir(dir, 0o700) != nil {
			return
		}
		if p, err := c.startIn(dir, boundName, boundName, "1", "8"); err == nil {
			n.sleep(Lease / 2)
			p.kill()
		}
	})
}

// removeShm removes the shared-memory file of a database that is open. Whoever comes later makes a new one.
func (n *nemesis) removeShm() bool {
	return n.withSideDatabase(func(c *processes) {
		_ = os.Remove(c.databaseAddress() + "-shm")
		for i := range 3 {
			if _, err := c.start(fmt.Sprintf("later%d", i), "enqueue", strconv.Itoa(i+1), "8"); err != nil {
				return
			}
			n.sleep(Lease / 5)
		}
	})
}

// onDatabaseBeside makes a database that an enqueuer and a worker have open, lets do happen to it, kills all that is left and looks for
// what they were told.
func (n *nemesis) withSideDatabase(do func(*processes)) bool {
	if !n.sideBusy.CompareAndSwap(false, true) {
		return false
	}
	n.sideDatabases++
	s := workspace{filepath.Join(n.dir, "beside"+strconv.Itoa(n.sideDatabases))}
	n.background.Go(func() {
		defer n.sideBusy.Store(false)
		found, err := s.judgeSideDatabase(n, do)
		if err != nil {
			found = append(found, Violation{"I11", 0, err.Error()})
		}
		if len(found) == 0 {
			_ = os.RemoveAll(s.dir) // else it is kept with the rest
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, v := range found {
			n.violations = append(n.violations, Violation{v.Invariant, v.Task, filepath.Base(s.dir) + ": " + v.Text})
		}
	})
	return true
}

func (w workspace) judgeSideDatabase(n *nemesis, do func(*processes)) ([]Violation, error) {
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, nil //nolint:nilerr // the disk is full now and then
	}
	notes, err := openNotes(w)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	defer notes.file.Close()
	ps := newProcesses(w, n.processes.path, n.processes.name, notes)
	defer ps.spawner.end()
	defer ps.killAll()
	if _, err := ps.start("first", "enqueue", "1", "8"); err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	for began := time.Now(); notes.count(0, opAck) < sideAcks; n.sleep(10 * time.Millisecond) {
		if time.Since(began) > sideOpen || n.isStopping() {
			return nil, nil
		}
	}
	if _, err := ps.start("worker", "worker", "functions"); err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	n.sleep(Lease / 5)
	do(ps)
	ps.killAll()
	return w.lostTasks()
}

// kept looks with SQLite alone for every task that somebody was told of.
func (w workspace) lostTasks() (found []Violation, err error) {
	db, err := connect(w)
	if err != nil {
		return nil, err
	}
	direct := &database{pool: db}
	defer direct.close()
	problems, err := direct.integrityProblems(context.Background())
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		found = append(found, Violation{"I11", 0, p})
	}
	for _, of := range []workspace{w, {filepath.Join(w.dir, boundName)}} {
		notes, err := readNotes(of)
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		for _, note := range notes {
			if note.op != opAck {
				continue
			}
			var n int
			const text = "SELECT count(*) FROM tasks WHERE id = ? AND (label = ? OR unique_key IS NOT NULL)"
			if err := db.QueryRow(text, note.task, note.text).Scan(&n); err != nil {
				return nil, err
			}
			if n == 0 {
				found = append(found, Violation{"I1", note.task, fmt.Sprintf("was acknowledged for %s, and there is no such task", note.text)})
			}
		}
	}
	return found, nil
}

// Bind mounts the file of the database of a run in its subdirectory, for this process alone.
func Bind(dir string) error {
	file := workspace{dir}.databaseAddress()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return bind(filepath.Join(filepath.Dir(dir), filepath.Base(file)), file)
}

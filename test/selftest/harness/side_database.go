package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Some faults can destroy the content of a database if runner doesn't detect
// them. The nemesis injects each such fault into an extra database, a side
// database. So tasks that are lost there don't disturb the check of the main
// database. Every task whose enqueue was acknowledged must exist in the side
// database. But runner may reject calls, and every process that has the side
// database open may exit.

// boundName is the role of an enqueuer that opens the database through a bind
// mount. Its process and its directory have the same name.
const boundName = "bound"

const (
	sideAcks = 3                // number of enqueues that must be acknowledged before the fault
	sideOpen = 10 * time.Second // time limit for the enqueues before the fault
)

// bindMount lets a process open a database through a bind mount of the file, as
// in a container that mounts only that file. Other processes have the database
// open by its own path.
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

// removeShm removes the shared-memory file of an open database. Processes that
// open the database later create a new one.
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

// withSideDatabase creates a database that an enqueuer and a worker have open,
// and calls do in the background. Then it kills all processes and looks for
// lost tasks.
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
			_ = os.RemoveAll(s.dir) // a directory with violations stays, because the report names it
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
		return nil, nil //nolint:nilerr // the nemesis fills the disk now and then
	}

	notes, err := openNotes(w)
	if err != nil {
		return nil, nil //nolint:nilerr // the disk may be full
	}
	defer notes.file.Close()

	ps := newProcesses(w, Options{Runner: n.processes.runner, Self: n.processes.self}, notes)
	defer ps.spawner.end()
	defer ps.killAll()

	if _, err := ps.start("first", "enqueue", "1", "8"); err != nil {
		return nil, nil //nolint:nilerr // the disk may be full
	}

	for began := time.Now(); notes.count(0, opAck) < sideAcks; n.sleep(10 * time.Millisecond) {
		if time.Since(began) > sideOpen || n.isStopping() {
			return nil, nil
		}
	}

	if _, err := ps.start("worker", "worker", "functions"); err != nil {
		return nil, nil //nolint:nilerr // the disk may be full
	}

	n.sleep(Lease / 5)
	do(ps)
	ps.killAll()
	return w.lostTasks()
}

// lostTasks returns a violation for each acknowledged task that doesn't exist,
// and for each problem that the integrity checks of SQLite find. It uses the
// SQL driver, and not the database code of runner.
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
				found = append(found, Violation{"I1", note.task, fmt.Sprintf("acknowledged for label %s, but missing", note.text)})
			}
		}
	}

	return found, nil
}

// Bind bind-mounts the database file of the parent directory into dir, in the
// mount namespace of this process.
func Bind(dir string) error {
	file := workspace{dir}.databaseAddress()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return bind(filepath.Join(filepath.Dir(dir), filepath.Base(file)), file)
}

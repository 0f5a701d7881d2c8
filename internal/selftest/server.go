package selftest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Server is a PostgreSQL server that belongs to the run: it is killed, too.
type Server struct {
	Address string                      // of an empty database
	Socket  string                      // where it listens
	Kill    func() error                // all of it, at once
	Crash   func() error                // its first process, by KILL
	Run     func(context.Context) error // again
}

// hosts is how many there seem to be: processes that share neither locks nor their way to the server. The commands of all of them are
// looked after, since it is one machine after all.
const hosts = 2

// onServer says whether the database of a run is on a server.
func onServer(database string) bool { return strings.HasPrefix(database, "postgres://") }

// addresses are those by which the processes of a run name its database.
func (w workspace) addresses() []string {
	text, err := os.ReadFile(filepath.Join(w.dir, "addresses"))
	if err != nil {
		return []string{filepath.Join(w.dir, "runner.db")}
	}
	return strings.Fields(string(text))
}

// serve tells all processes of the run where the database is: the first address is the server's own, the others lead through proxies.
func (r *run) setUpServer(ctx context.Context) error {
	if r.Server == nil {
		return nil
	}
	list := []string{r.Server.Address}
	for range hosts {
		p, err := newProxy(r.Server.Socket)
		if err != nil {
			return err
		}
		r.proxies = append(r.proxies, p)
		list = append(list, "postgres://postgres@"+p.address()+"/postgres?sslmode=disable")
	}
	return os.WriteFile(filepath.Join(r.dir, "addresses"), []byte(strings.Join(list, "\n")), 0o600)
}

// host is what makes a process one of host n, counted from 1.
func (w workspace) host(n int) []string {
	list := w.addresses()
	return []string{"RUNNER_DB=" + list[n], "XDG_STATE_HOME=" + filepath.Join(w.dir, "host"+strconv.Itoa(n))}
}

package selftest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Server is a PostgreSQL server that belongs to the run, with a synchronous standby. The nemesis kills it. Before the
// run, the server has an empty database named postgres.
type Server struct {
	Socket func() string               // returns the path of the Unix socket of the primary server
	Kill   func() error                // kills all processes of the primary server at once
	Crash  func() error                // sends SIGKILL to the first process of the primary server only
	Run    func(context.Context) error // starts the primary server again

	// HasStandby reports whether the standby has every confirmed commit.
	HasStandby func() bool
	// Promote makes the standby the primary server, after Kill or Crash. It then creates another standby in the background.
	Promote func() error
}

// hosts is the number of simulated hosts. Processes of different hosts share no lock files and use different
// proxies. The watcher sees the commands of all hosts, because there is only one machine.
const hosts = 2

// onServer reports whether an address names a database on a server.
func onServer(database string) bool { return strings.HasPrefix(database, "postgres://") }

// addresses lists the addresses of the database of the run. The first address is that of the proxy without faults. Each further address
// is that of the proxy of one simulated host. A SQLite file has only one address, its path.
func (w workspace) addresses() []string {
	text, err := os.ReadFile(filepath.Join(w.dir, "addresses"))
	if err != nil {
		return []string{filepath.Join(w.dir, "runner.db")}
	}
	return strings.Fields(string(text))
}

// setUpServer starts the proxies and writes all addresses into a file of the workspace, where the processes of the
// run find them.
func (r *run) setUpServer() error {
	if r.Server == nil {
		return nil
	}
	var list []string
	for range 1 + hosts {
		p, err := newProxy(r.Server.Socket)
		if err != nil {
			return err
		}
		r.proxies = append(r.proxies, p)
		list = append(list, "postgres://postgres@"+p.address()+"/postgres?sslmode=disable")
	}
	return os.WriteFile(filepath.Join(r.dir, "addresses"), []byte(strings.Join(list, "\n")), 0o600)
}

// host returns the environment of a process on the simulated host n. The first host has the number 1.
func (w workspace) host(n int) []string {
	list := w.addresses()
	return []string{"RUNNER_DB=" + list[n], "XDG_STATE_HOME=" + filepath.Join(w.dir, "host"+strconv.Itoa(n))}
}

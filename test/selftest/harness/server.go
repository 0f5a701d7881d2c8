package harness

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hosts is the number of simulated hosts. Processes of different hosts share no
// lock files and use different proxies. The watcher sees the commands of all
// hosts, because there is only one machine.
const hosts = 2

// onServer reports whether an address names a database on a server.
func onServer(database string) bool { return strings.HasPrefix(database, "postgres://") }

// addresses lists the addresses of the database of the run. The first address
// is that of the proxy without faults. Each further address is that of the
// proxy of one simulated host. A SQLite file has only one address, its path.
func (w workspace) addresses() []string {
	text, err := os.ReadFile(filepath.Join(w.dir, "addresses"))
	if err != nil {
		return []string{filepath.Join(w.dir, "runner.db")}
	}
	return strings.Fields(string(text))
}

// setUpServer starts a server and its proxies, and writes all addresses into a
// file of the workspace, where the processes of the run find them.
func (r *run) setUpServer(ctx context.Context) (err error) {
	if !r.Postgres {
		return nil
	}
	if r.cluster, err = startCluster(ctx); err != nil {
		return err
	}

	var list []string
	for range 1 + hosts {
		p, err := newProxy(r.cluster.socket)
		if err != nil {
			return err
		}
		r.proxies = append(r.proxies, p)
		list = append(list, "postgres://postgres@"+p.address()+"/postgres?sslmode=disable")
	}

	return os.WriteFile(filepath.Join(r.dir, "addresses"), []byte(strings.Join(list, "\n")), 0o600)
}

// host returns the environment of a process on the simulated host n. The first
// host has the number 1.
func (w workspace) host(n int) []string {
	list := w.addresses()
	return []string{"RUNNER_DB=" + list[n], "XDG_STATE_HOME=" + filepath.Join(w.dir, "host"+strconv.Itoa(n))}
}

package cli

import (
	"slices"
	"strconv"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/postgres"
)

// serverList splits a list of server addresses that are separated by spaces. It returns nil for any other text, such as a path with spaces.
func serverList(text string) []string {
	list := strings.Fields(text)
	if len(list) < 2 || slices.ContainsFunc(list, func(address string) bool { return !admin.ParseAddress(address).SharedByHosts() }) {
		return nil
	}
	return list
}

// choose returns a copy of d that names a single server. The value of --server selects it: a number from 1, queue:NAME or lane:KEY.
// If the value is empty, d must not list several servers.
func (d database) choose(server string) (database, error) {
	n := len(d.servers)
	switch {
	case server == "" && n == 0:
		return d, nil
	case server == "":
		return d, failure.Usage("%s lists %d servers, and this command uses one", d.from, n).
			Hint("--server 1, or --server queue:NAME for the server of a queue")
	case n == 0:
		return d, failure.Usage("--server requires a list of servers in --db or RUNNER_DB").Hint("docs/postgres.md, Several servers")
	}
	if number, err := strconv.Atoi(server); err == nil {
		if number < 1 || number > n {
			return d, failure.Usage("invalid --server %d; %s lists %d servers", number, d.from, n)
		}
		return d.only(number - 1), nil
	}
	target, err := taskspec.ParseTarget(server)
	switch {
	case err == nil && target.Kind == jobs.QueueTarget:
		return d.only(postgres.ServerIndex(jobs.Spec{Queue: target.Name}, n)), nil
	case err == nil && target.Kind == jobs.LaneTarget:
		return d.only(postgres.ServerIndex(jobs.Spec{Lane: target.Name}, n)), nil
	}
	return d, failure.Usage("invalid --server %q; use a number from 1 to %d, queue:NAME or lane:KEY", server, n)
}

// The method "only" returns a copy of d that names a single server: the one at index i of the list in d.
func (d database) only(i int) database {
	d.Path, d.servers = d.servers[i], nil
	return d
}

// addresses returns the addresses in the user's list of servers. If the user named only one database, it returns the path or address of
// this database.
func (d database) addresses() []string {
	if list := serverList(d.Path); list != nil {
		return list
	}
	return []string{d.Path}
}

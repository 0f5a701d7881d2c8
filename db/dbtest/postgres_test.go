package dbtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/internal/pgserver"
)

// server is the PostgreSQL server of this test program.
var server = sync.OnceValues(func() (*pgserver.Server, error) {
	s, err := pgserver.Start(context.Background())
	closeServer = func() {
		if err == nil {
			_ = s.Close()
		}
	}
	return s, err
})

var closeServer = func() {} // does nothing unless a server was started

// free lists schemas that tests have left empty. Creating a schema takes longer than most tests.
var free = struct {
	sync.Mutex
	names []string
	made  int
}{}

// openOnServer opens a new database on the server of this test program.
func openOnServer(t testing.TB) *db.DB {
	t.Helper()
	return dbtest.OpenServer(t, freshAddress(t))
}

func freshAddress(t testing.TB) string {
	t.Helper()
	s, err := server()
	if errors.Is(err, pgserver.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	free.Lock()
	defer free.Unlock()
	var name string
	if n := len(free.names); n > 0 {
		name, free.names = free.names[n-1], free.names[:n-1]
	} else {
		free.made++
		name = fmt.Sprintf("test%d", free.made)
	}
	address := s.Address("postgres", "search_path="+name)
	t.Cleanup(func() { // runs after the database is closed
		if dbtest.Empty(t, address) {
			free.Lock()
			defer free.Unlock()
			free.names = append(free.names, name)
		}
	})
	return address
}

func TestStoreOnPostgreSQL(t *testing.T) { dbtest.Run(t, openOnServer) }

package dbtest_test

import (
	"sync"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/internal/testkit/pgkit"
)

// free lists the addresses of empty schemas. Several tests use the same schema one after the other, because creating a schema takes longer
// than most tests.
var free = struct {
	sync.Mutex
	addresses []string
}{}

// openOnServer opens an empty database on the server of this test program.
func openOnServer(t testing.TB) *db.DB {
	t.Helper()
	address := emptyAddress(t)
	t.Cleanup(func() { // this function runs after the database is closed
		if dbtest.Empty(t, address) {
			free.Lock()
			defer free.Unlock()
			free.addresses = append(free.addresses, address)
		}
	})
	return dbtest.OpenServer(t, address)
}

// emptyAddress returns the address of a schema without rows.
func emptyAddress(t testing.TB) string {
	t.Helper()
	free.Lock()
	defer free.Unlock()
	n := len(free.addresses)
	if n == 0 {
		return pgkit.Address(t)
	}
	address := free.addresses[n-1]
	free.addresses = free.addresses[:n-1]
	return address
}

func TestStoreOnPostgreSQL(t *testing.T) {
	pgkit.Need(t)
	dbtest.Run(t, openOnServer)
}

// TestStoreOnPostgreSQLWithACursor runs the suite on a server in a database with
// a cursor, as runner.OnFinished makes one.
func TestStoreOnPostgreSQLWithACursor(t *testing.T) {
	pgkit.Need(t)
	dbtest.Run(t, dbtest.WithCursor(openOnServer))
}

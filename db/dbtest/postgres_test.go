package dbtest_test

import (
	"sync"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// free lists the addresses of empty schemas. Several tests use the same schema
// one after the other, because creating a schema takes longer than most tests.
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

// TestStoreOnPostgreSQLWithCursor runs the suite on a server in a database with
// a cursor, as runner.ConsumeFinished makes one.
func TestStoreOnPostgreSQLWithCursor(t *testing.T) {
	pgkit.Need(t)
	dbtest.Run(t, dbtest.WithCursor(openOnServer))
}

// TestTriggerThatKeepsTaskOutEndsInsert has a trigger that rejects every
// row without an error, as if another task had the key.
func TestTriggerThatKeepsTaskOutEndsInsert(t *testing.T) {
	d := dbtest.OpenServer(t, pgkit.Address(t))
	_, err := dbtest.RawOf(t, d).Exec("SET search_path = " + d.Server().Schema + `;
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER nothing BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION nothing()`)
	testkit.NoError(t, err)
	spec := jobs.Command(command.Command{Argv: []string{"true"}}, jobs.Unique("k"))
	_, err = d.Insert(t.Context(), []jobs.Spec{spec}, time.Now())
	testkit.ErrorIs(t, err, jobs.ErrConflict, `key "k"`, "no task holds the key")
}

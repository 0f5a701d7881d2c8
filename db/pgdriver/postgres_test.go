package pgdriver

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/runner/test/testkit"
)

// TestAddressOfPoolLeadsToItsDatabase reads the address that commands get in
// RUNNER_DB when a pool was opened.
func TestAddressOfPoolLeadsToItsDatabase(t *testing.T) {
	for _, text := range []string{
		"postgres://a%20user:secret@db.example.com:5433/a%2Fb?search_path=app",
		"postgres://ann@/app?host=/run/postgresql",
		"postgres://ann@[::1]/app",
	} {
		config, err := pgxpool.ParseConfig(text)
		testkit.NoError(t, err)
		of, address := EngineOf(config, "mail")
		want, err := of.Connect("", time.Second)
		testkit.NoError(t, err)
		got, err := Engine().Connect(address, time.Second)
		testkit.NoError(t, err)
		testkit.Equal(t, text+": name", got.Name, want.Name)
		testkit.Equal(t, text+": schema", got.Schema, "mail")
		testkit.Equal(t, text+": schema of the pool", want.Schema, "mail")
	}
}

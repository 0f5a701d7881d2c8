package postgres

import (
	"fmt"
	"testing"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/test/testkit/pgkit"
)

// TestPostgreSQLPreparesEveryStatementOfPackage prepares the statements of this
// package on a server. A test of package db does the same for the statements of
// package db.
func TestPostgreSQLPreparesEveryStatementOfPackage(t *testing.T) {
	dialect := Dialect("ours")
	texts := map[string]string{}
	for i, s := range []*sqltext.Statement{serverVersion, selectOurs, setVersion, hasSchema, serverSize, selectOuter,
		selectNotify, serverHighestID, serverSetID, serverSetWorker, sqltext.Query(SelectBackend)} {
		texts[fmt.Sprintf("statement %d", i)] = dialect.Text(s)
	}
	pgkit.Prepare(t, texts)
}

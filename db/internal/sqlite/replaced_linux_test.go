package sqlite

import (
	"testing"
)

// TestCheckpointsAreNotTakenForReplacedFiles changes the database file by checkpoints of another connection. After some of these
// checkpoints SQLite also writes the log from its beginning. No check may report a replaced file.
func TestCheckpointsAreNotTakenForReplacedFiles(t *testing.T) {
	d, conn := openFile(t)
	other, err := Connect(d.path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i := range 40 {
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO last_ids (id) VALUES (?)", i+1); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if err := d.Committed(true); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		switch i % 3 {
		case 0:
			_, err = other.Exec("PRAGMA wal_checkpoint(PASSIVE)")
		case 1:
			_, err = other.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

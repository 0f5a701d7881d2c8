package sqlite

import (
	"testing"
)

func TestHasMountReadsTheMountTable(t *testing.T) {
	const mounts = "22 1 0:21 / / rw - ext4 /dev/vda rw\n36 22 0:21 /q.db /data/a\\040b.db rw,noatime master:1 - ext4 /dev/vda rw\n"
	for path, want := range map[string]bool{"/data/a b.db": true, "/data": false, "/": true, "/q.db": false} {
		if got := hasMount(mounts, path); got != want {
			t.Errorf("%s is a mount point: got %v, want %v", path, got, want)
		}
	}
}

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

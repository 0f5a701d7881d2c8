package sqlite

import (
	"os"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
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
		if content := d.content.Load(); content == nil || !content.settled {
			t.Fatalf("write %d: got content %+v, want a settled one", i, content)
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

// TestARecoveryOfTheSharedMemoryIsNotTakenForAReplacedFile damages the shared memory, as happens when a process is killed while it commits.
// The next process recovers the shared memory from the log, and its checkpoint then copies the whole log into the file once more.
func TestARecoveryOfTheSharedMemoryIsNotTakenForAReplacedFile(t *testing.T) {
	d, conn := openFile(t)
	other, err := Connect(d.path, "rw")
	testkit.NoError(t, err)
	defer other.Close()
	_, err = conn.ExecContext(t.Context(), "INSERT INTO last_ids (id) VALUES (1)")
	testkit.NoError(t, err)
	_, err = other.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	testkit.NoError(t, err)
	testkit.NoError(t, d.Committed(true))
	before := d.content.Load()
	if before == nil || !before.settled {
		t.Fatalf("got content %+v after a checkpoint, want a settled one", before)
	}

	shared, err := os.OpenFile(d.sharedPath, os.O_WRONLY, 0)
	testkit.NoError(t, err)
	_, err = shared.WriteAt(make([]byte, 4), 0) // SQLite rebuilds the shared memory if the two copies of its header differ
	testkit.NoError(t, err)
	testkit.NoError(t, shared.Close())
	testkit.NoError(t, os.Chtimes(d.path, time.Time{}, time.UnixMilli(1)))
	_, err = other.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	testkit.NoError(t, err)
	now, err := statFile(d.path)
	testkit.NoError(t, err)
	if content := d.readContent(); content == nil || content.checkpoints != before.checkpoints || now == before.stamp || now.written < 1e9 {
		t.Fatalf("got content %+v and file %+v after the recovery, want the progress of %+v and a newer file", content, now, before)
	}
	testkit.NoError(t, d.Committed(true))
}

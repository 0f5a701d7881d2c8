package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/jobs"
)

// partWithLog returns a copy of a database whose log holds some of the tables.
func partWithLog(t *testing.T) string {
	t.Helper()
	d, conn := openFile(t)
	if _, err := conn.ExecContext(t.Context(), "INSERT INTO last_ids (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}

	part := filepath.Join(t.TempDir(), "copy.part")
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(t.Context(), part+end, d.path+end); err != nil {
			t.Fatal(err)
		}
	}

	return part
}

// TestCopyIsNotSealedWhileItsLogHoldsPages makes each step fail that moves the
// pages of the log into the file. A close of SQLite reports no such failure.
func TestCopyIsNotSealedWhileItsLogHoldsPages(t *testing.T) {
	for name, c := range map[string]struct {
		op   fault.Op
		end  string
		code fault.Code
		kind error
	}{
		"disk full":     {fault.Write, "", fault.Full, jobs.ErrFull},
		"broken disk":   {fault.Write, "", fault.IOErr, jobs.ErrCorrupt},
		"log uncut":     {fault.Truncate, "-wal", fault.IOErr, jobs.ErrCorrupt},
		"log unremoved": {fault.Delete, "-wal", fault.IOErr, jobs.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			part := partWithLog(t)
			fault.Under(t, part).Decide(func(e fault.Event) fault.Code {
				if e.Op != c.op || !strings.HasSuffix(e.Path, ".part"+c.end) {
					return fault.OK
				}
				if c.op == fault.Delete { // as if another program wrote to it
					if err := os.WriteFile(e.Path, []byte("pages"), 0o600); err != nil {
						t.Error(err)
					}
				}
				return c.code
			})
			if n, err := sealCopy(t.Context(), part, part+".new"); !errors.Is(err, c.kind) {
				t.Errorf("got a copy of %d bytes and error %v, want one that is %v", n, err, c.kind)
			}
		})
	}
}

// TestCopyIsNotSealedWhileAnotherProgramReadsIt reads from the log of the
// copy, so that SQLite can't empty it.
func TestCopyIsNotSealedWhileAnotherProgramReadsIt(t *testing.T) {
	part := partWithLog(t)
	other, err := Connect(part, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	for _, text := range []string{"BEGIN", "SELECT id FROM last_ids"} {
		if _, err := other.Exec(text); err != nil {
			t.Fatal(err)
		}
	}

	if n, err := sealCopy(t.Context(), part, part); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("got a copy of %d bytes and error %v, want one that is %v", n, err, jobs.ErrBusy)
	}
}

// TestSealedCopyIsOneFile seals a copy that has a log.
func TestSealedCopyIsOneFile(t *testing.T) {
	part := partWithLog(t)
	if _, err := sealCopy(t.Context(), part, part); err != nil {
		t.Fatal(err)
	}

	names, err := filepath.Glob(part + "*")
	if err != nil || len(names) != 1 {
		t.Errorf("got files %q and error %v, want one", names, err)
	}
}

package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

const (
	copyEvery = 10 * time.Second
	forgetAge = "10s" // of finished tasks that are deleted
)

// look is what people and monitoring do meanwhile, by the command line: whatever it is, the database must not be busy for it.
func (ps *processes) runReader(s *slot) {
	lines := [][]string{{"list", "--json", "-n", "50"}, {"status", "--json"}, {"doctor", "--quiet"}, {"logs", "--json", "-q", "a", "--since", "2s"},
		{"list", "-s", "failed", "-n", "20"}, {"delete", "--older-than", forgetAge, "--yes"}}
	copied := time.Now()
	for i := 0; ; i++ {
		line := lines[i%len(lines)]
		if time.Since(copied) > copyEvery && len(ps.addresses()) == 1 { // a server's backups are its own
			copied, line = time.Now(), []string{"backup", "--force", ps.dir + "/backup.db"}
		}
		ps.mu.Lock()
		stopped := s.stopped || ps.stopped
		ps.mu.Unlock()
		if stopped {
			return
		}
		cmd, log, err := ps.command(s.name, line...)
		if err == nil {
			err = ps.spawner.start(cmd)
			if err == nil {
				ps.setReaderPID(cmd.Process.Pid)
				err = cmd.Wait()
				ps.setReaderPID(0)
			}
			log.Close()
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said := ps.logTail(s.name)
			switch code := exit.ExitCode(); {
			case code == 75 && bytes.Contains(said, []byte("database is busy")): // a full disk ends with 75, too
				ps.notes.add(opBusy, 0, 0, cmd.Args[1])
			case code == 2: // a look that looks at nothing
				ps.mu.Lock()
				ps.lifetimes = append(ps.lifetimes, lifetime{failure: fmt.Sprintf("%q is refused: %s", line, said)})
				ps.mu.Unlock()
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (ps *processes) setReaderPID(pid int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.readerPID = pid
}

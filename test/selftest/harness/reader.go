package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

const (
	backupEvery = 10 * time.Second
	deleteAge   = "10s" // age at which the reader deletes finished tasks
)

// runReader runs the commands that users and monitoring systems run: list,
// status, doctor, logs, delete and backup. None of them may fail because the
// database is busy.
func (ps *processes) runReader(s *slot) {
	lines := [][]string{{"list", "--json", "-n", "50"}, {"status", "--json"}, {"doctor", "--quiet"},
		{"logs", "--json", "-q", "a", "--since", "2s"},
		{"list", "-s", "failed", "-n", "20"}, {"delete", "--older-than", deleteAge, "--yes"}}
	copied := time.Now()
	for i := 0; ; i++ {
		line := lines[i%len(lines)]
		if time.Since(copied) > backupEvery && len(ps.addresses()) == 1 { // a backup needs a database in a file, so skip it on a server
			copied, line = time.Now(), []string{"backup", "--force", ps.dir + "/backup.db"}
		}

		ps.mu.Lock()
		stopped := s.stopped || ps.stopped
		ps.mu.Unlock()
		if stopped {
			return
		}

		cmd, log, err := ps.command(ps.runner, s.name, line...)
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
			log := ps.logTail(s.name)
			switch code := exit.ExitCode(); {
			case code == 75 && bytes.Contains(log, []byte(busyText)): // look for the text, because a full disk also gives exit status 75
				ps.notes.add(opBusy, 0, 0, cmd.Args[1])
			case code == 2: // a usage error: the command line of this test is wrong
				ps.mu.Lock()
				ps.lifetimes = append(ps.lifetimes, lifetime{failure: fmt.Sprintf("usage error of %q: %s", line, log)})
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

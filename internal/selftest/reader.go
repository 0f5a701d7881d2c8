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
func (c *processes) runReader(p *slot) {
	lines := [][]string{{"list", "--json", "-n", "50"}, {"status", "--json"}, {"doctor", "--quiet"}, {"logs", "--json", "-q", "a", "--since", "2s"},
		{"list", "-s", "failed", "-n", "20"}, {"delete", "--older-than", forgetAge, "--yes"}}
	copied := time.Now()
	for i := 0; ; i++ {
		line := lines[i%len(lines)]
		if time.Since(copied) > copyEvery && len(c.addresses()) == 1 { // a server's backups are its own
			copied, line = time.Now(), []string{"backup", "--force", c.dir + "/backup.db"}
		}
		c.mu.Lock()
		over := p.stopped || c.stopped
		c.mu.Unlock()
		if over {
			return
		}
		cmd, log, err := c.command(p.name, line...)
		if err == nil {
			err = c.spawner.start(cmd)
			if err == nil {
				c.setReaderPID(cmd.Process.Pid)
				err = cmd.Wait()
				c.setReaderPID(0)
			}
			log.Close()
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said := c.logTail(p.name)
			switch code := exit.ExitCode(); {
			case code == 75 && bytes.Contains(said, []byte("database is busy")): // a full disk ends with 75, too
				c.notes.add(opBusy, 0, 0, cmd.Args[1])
			case code == 2: // a look that looks at nothing
				c.mu.Lock()
				c.lifetimes = append(c.lifetimes, lifetime{failure: fmt.Sprintf("%q is refused: %s", line, said)})
				c.mu.Unlock()
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (c *processes) setReaderPID(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readerPID = pid
}

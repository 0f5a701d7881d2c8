package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// TestMain runs the program instead of the tests if SIGNUP_TEST is set. The
// tests start and kill such processes.
func TestMain(m *testing.M) {
	if os.Getenv("SIGNUP_TEST") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mailServer accepts letters and keeps their headers. It supports only the SMTP
// commands that the program uses.
type mailServer struct {
	address string

	mu      sync.Mutex
	letters []textproto.MIMEHeader
}

func startMail(t *testing.T, address string) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m := &mailServer{address: listener.Addr().String()}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(c)
		}
	}()
	return m
}

func (m *mailServer) serve(c net.Conn) {
	defer c.Close()
	conn := textproto.NewConn(c)
	_ = conn.PrintfLine("220 ready")
	for {
		line, err := conn.ReadLine()
		if err != nil {
			return
		}
		switch word, _, _ := strings.Cut(line, " "); word {
		case "DATA":
			_ = conn.PrintfLine("354 go on")
			text, err := conn.ReadDotBytes()
			if err != nil {
				return
			}
			header, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(string(text)))).ReadMIMEHeader()
			m.mu.Lock()
			m.letters = append(m.letters, header)
			m.mu.Unlock()
			_ = conn.PrintfLine("250 accepted")
		case "QUIT":
			_ = conn.PrintfLine("221 bye")
			return
		default:
			_ = conn.PrintfLine("250 ok")
		}
	}
}

// byID returns how many mails have each Message-ID.
func (m *mailServer) byID() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := map[string]int{}
	for _, l := range m.letters {
		n[l.Get("Message-Id")]++
	}
	return n
}

func post(base, email string) (int, string, error) {
	answer, err := http.PostForm(base+"/signup", url.Values{"email": {email}})
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// TestEachUserGetsOneMail starts the mail server only after users have signed
// up. Each user must then get one mail. An address that the program rejects
// must get none.
func TestEachUserGetsOneMail(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	_ = closed.Close() // no mail server runs at this address yet
	path := filepath.Join(t.TempDir(), "app.db")
	a, err := open(t.Context(), path, address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	a.retry = jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: 20 * time.Millisecond}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.run(ctx, listener) }()
	base := "http://" + listener.Addr().String()
	for _, c := range []struct {
		email string
		want  int
	}{{"ann@example.com", 201}, {"ann@example.com", 409}, {"ann", 400}, {"", 400}, {"Bob <bob@example.com>", 400},
		{"bob@example.com", 201}} {
		if got, text, err := post(base, c.email); got != c.want || err != nil {
			t.Errorf("%q: got status %d, text %s and error %v, want status %d", c.email, got, text, err, c.want)
		}
	}
	err = admin.Changes(t.Context(), a.runner, func() (bool, error) { // wait until the first task has failed, because no mail server runs
		first, err := a.runner.Get(t.Context(), 1)
		return first.Attempt > 1, err
	})
	if err != nil {
		t.Error(err)
	}
	mail := startMail(t, address)
	for id := range int64(2) {
		if task, err := a.runner.Await(t.Context(), id+1); err != nil || task.State != jobs.Completed {
			t.Errorf("task %d: got state %s and error %v, want completed", id+1, task.State, err)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if got, want := fmt.Sprint(mail.byID()), "map[<welcome-1@example.com>:1 <welcome-2@example.com>:1]"; got != want {
		t.Errorf("got letters %s, want %s", got, want)
	}
	checkCommandLine(t, path)
}

// checkCommandLine checks with the command runner that the file has the right
// tasks.
func checkCommandLine(t *testing.T, path string) {
	t.Helper()
	command := filepath.Join(t.TempDir(), "runner")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("build runner: got error %v, want none: %s", err, out)
	}
	for want, args := range map[string][]string{
		"completed\tmail":              {"list", "-q", "mail", "-s", "completed"},
		"ann@example.com":              {"show", "1"},
		"level=INFO msg=sending serve": {"logs", "1"},
	} {
		out, err := exec.CommandContext(t.Context(), command, append([]string{"--db", path}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("runner %v: got error %v and this output, want %q in it:\n%s", args, err, want, out)
		}
	}
}

// TestKillingProcessLosesNoUser kills the process repeatedly while users sign
// up. Each user who got status 201 must be in the table. Each user in the table
// must have one task and get a mail.
func TestKillingProcessLosesNoUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	mail := startMail(t, "127.0.0.1:0")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	confirmed := map[string]bool{}
	for round := range 4 {
		p := exec.CommandContext(t.Context(), self, "-db", path, "-listen", address, "-smtp", mail.address)
		p.Env = append(os.Environ(), "SIGNUP_TEST=1")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var clients sync.WaitGroup
		killed, kill := context.WithCancel(t.Context())
		for c := range 3 {
			clients.Go(func() {
				for n := 0; ; n++ {
					email := fmt.Sprintf("user-%d-%d-%d@example.com", round, c, n)
					status, _, err := post("http://"+address, email)
					if err != nil { // the process does not accept connections yet, or the test has killed it
						select {
						case <-killed.Done():
							return
						case <-time.After(10 * time.Millisecond):
							n--
							continue
						}
					}
					mu.Lock()
					// status 409 means that the user is in the table, because
					// the process was killed before it could send the reply 201
					if status == http.StatusCreated || status == http.StatusConflict {
						confirmed[email] = true
					}
					if len(confirmed) == (round+1)*12 {
						_ = p.Process.Kill()
						kill()
					}
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		kill()
		_ = p.Wait()
	}

	a, err := open(t.Context(), path, mail.address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.runner.Work(t.Context(), runner.WorkOptions{UntilEmpty: true}); err != nil {
		t.Fatal(err)
	}
	letters := mail.byID()
	users := checkUsers(t, a, letters, confirmed)
	if tasks, _, err := a.runner.Count(t.Context(), jobs.Filter{}); err != nil || tasks != users {
		t.Errorf("got %d tasks and error %v, want %d, one for each user", tasks, err, users)
	}
	if len(confirmed) > 0 {
		t.Errorf("got no rows of the confirmed users %v, want one for each", confirmed)
	}
	t.Logf("%d users, %d letters", users, len(letters))
}

// checkUsers checks that each user in the table has a completed task and a
// letter, and returns the number of users. It removes each of these users from
// the map confirmed.
func checkUsers(t *testing.T, a *app, letters map[string]int, confirmed map[string]bool) (users int) {
	t.Helper()
	rows, err := a.db.QueryContext(t.Context(), `SELECT users.email,
		coalesce(tasks.label = users.email AND tasks.state = 'completed', 0), users.welcome
		FROM users LEFT JOIN tasks ON tasks.id = users.welcome`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var email string
		var welcomed bool
		var id int64
		if err := rows.Scan(&email, &welcomed, &id); err != nil {
			t.Fatal(err)
		}
		users++
		delete(confirmed, email)
		if n := letters[fmt.Sprintf("<welcome-%d@example.com>", id)]; !welcomed || n == 0 {
			t.Errorf("%s: got %d letters, task %d completed: %v; want a letter and a completed task", email, n, id, welcomed)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Error(err)
	}
	return users
}

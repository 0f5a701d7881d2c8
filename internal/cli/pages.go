package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"example.com/runner/internal/ui"
	"example.com/runner/web"
)

// Pages are the options that runner serve and runner work --serve share.
type Pages struct {
	web.ServerOptions
	PrintToken bool // whether a pipe or a log, too, gets the address with the token
	auth       string
}

// Server returns the options of the server.
func (s *Pages) Server() web.ServerOptions {
	s.NoToken = s.auth == "none"
	return s.ServerOptions
}

// Options returns the options and sets their defaults.
func (s *Pages) Options() []Flag {
	s.BasePath = "/"
	return []Flag{
		Bool(&s.ReadOnly, "read-only", "show tasks, but do not allow changes"),
		Text(&s.BasePath, "base-path", "PATH", "URL path of the first page; a proxy may strip it").Default("/"),
		Text(&s.PublicURL, "public-url", "URL",
			"address at which users reach the dashboard through a proxy; RUNNER_EVENT_URL of a hook begins with it"),
		Choice(&s.auth, "auth", "whether the pages need the token; none is allowed with a unix socket only",
			"token", "none").Default("token"),
		Text(&s.TokenFile, "token-file", "FILE", "file with the token; created if missing").Default("runner.db.d/token"),
		Bool(&s.PrintToken, "print-token", "print the address with the token even if the output is a pipe or a log"),
		Bool(&s.HideArgs, "hide-args", "do not show arguments, commands, results and output"),
		Bool(&s.Insecure, "insecure", "allow an address that other machines can reach, without TLS"),
	}
}

// ShownURL returns the address of the pages, to be printed to out. A log must
// not have the token: unless out is a terminal, the address has none, and
// hidden says where it is.
func ShownURL(s *web.Server, out *ui.Stream, printToken bool) (shown, hidden string) {
	if out.TTY || printToken || s.TokenFile() == "" {
		return s.URL(), ""
	}
	return s.Address(), "sign in with the token in " + s.TokenFile() + "; --print-token prints it here"
}

// OpenBrowser opens an address in the user's browser. The address has the
// token, and other users can see the arguments of a process. So the browser
// gets a file that only this user can read and that sends it on. The caller
// removes the file.
func OpenBrowser(ctx context.Context, url string) (file string, err error) {
	if !strings.HasPrefix(url, "http") {
		return "", errors.New("a browser cannot open a unix socket")
	}

	made, err := os.CreateTemp("", "runner-*.html") // CreateTemp gives the file mode 0600
	if err != nil {
		return "", err
	}

	_, err = made.WriteString(`<!doctype html><meta http-equiv="refresh" content="0; url=` + url + `">`)
	if err := errors.Join(err, made.Close()); err != nil {
		return made.Name(), err
	}

	name, args := "xdg-open", []string{made.Name()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", made.Name()}
	}

	return made.Name(), exec.CommandContext(ctx, name, args...).Start()
}

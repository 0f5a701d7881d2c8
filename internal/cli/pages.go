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

// PagesOptions returns the options that "runner serve" and "runner work --serve" share.
func PagesOptions() []Flag {
	return []Flag{
		BoolOption("read-only", "show tasks, but do not allow changes"),
		TextOption("base-path", "PATH", "URL path of the first page; a proxy may strip it", "/").Default("/"),
		TextOption("public-url", "URL",
			"address at which users reach the dashboard through a proxy; RUNNER_EVENT_URL of a hook begins with it", ""),
		ChoiceOption("auth",
			"whether the pages need the token; none is allowed with a unix socket only", "token", "token", "none").Default("token"),
		TextOption("token-file", "FILE", "file with the token; created if missing", "").Default("runner.db.d/token"),
		BoolOption("print-token", "print the address with the token even if the output is a pipe or a log"),
		BoolOption("hide-args", "do not show arguments, commands, results and output"),
		BoolOption("insecure", "allow an address that other machines can reach, without TLS"),
	}
}

// ReadPagesOptions returns the values of the options that PagesOptions defines.
func ReadPagesOptions(c *Context) web.ServerOptions {
	return web.ServerOptions{
		Options: web.Options{BasePath: Get[string](c, "base-path"), ReadOnly: Get[bool](c, "read-only"),
			HideArgs: Get[bool](c, "hide-args")},
		PublicURL: Get[string](c, "public-url"), TokenFile: Get[string](c, "token-file"),
		NoToken:  Get[string](c, "auth") == "none",
		Insecure: Get[bool](c, "insecure")}
}

// ShownURL returns the address of the pages, to be printed to out. A log must not contain the token. So if out is not a terminal, the
// address has no token, and the result "hidden" is a sentence that says where the token is.
func ShownURL(s *web.Server, out *ui.Stream, printToken bool) (shown, hidden string) {
	if out.TTY || printToken || s.TokenFile() == "" {
		return s.URL(), ""
	}
	return s.Address(), "sign in with the token in " + s.TokenFile() + "; --print-token prints it here"
}

// OpenBrowser opens an address in the user's browser. Other users can see the arguments of every process, so OpenBrowser does not pass the
// address, which contains the token, as an argument. It writes the address to a file that only this user can read, and opens that file. The
// caller must remove the file.
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

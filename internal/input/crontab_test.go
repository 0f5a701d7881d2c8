package input

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestParseReadsCrontabAsCronDoes(t *testing.T) {
	list := Crontab{Zone: "UTC", Home: "/home/ann"}.Parse(`# a comment
  PATH=/usr/local/bin:/usr/bin
"NAME" = ' two words '
MAILTO=ann@example.com
0 3 * * * a 100\% \\% in%put\%\n%last
SHELL=/bin/bash
CRON_TZ=Europe/Berlin
RANDOM_DELAY=5
HOME=/srv
@daily	b   "x  y" # not a comment
@hourly A=1 c
*/5 * * * * X=1 d
0 0 * * * a
`)
	testkit.Len(t, "entries", list, 5)
	type want struct{ name, cron, zone, args, input, cwd, jitter string }
	for i, w := range []want{
		{"a-100", "0 3 * * *", "UTC", `["/bin/sh","-c","a 100% \\\\"]`, " in\nput%\\n\nlast\n", "/home/ann", "0s"},
		{"b-x-y-not-a-comment", "@daily", "Europe/Berlin", `["/bin/bash","-c","b   \"x  y\" # not a comment"]`, "", "/srv", "5m0s"},
		{"c", "@hourly", "Europe/Berlin", `["/bin/bash","-c","A=1 c"]`, "", "/srv", "5m0s"},
		{"d", "*/5 * * * *", "Europe/Berlin", `["/bin/bash","-c","X=1 d"]`, "", "/srv", "5m0s"},
		{"a", "0 0 * * *", "Europe/Berlin", `["/bin/bash","-c","a"]`, "", "/srv", "5m0s"},
	} {
		testkit.NoError(t, list[i].Err)
		s := list[i].Schedule
		got := want{s.Name, s.Cron, s.Zone, string(s.Spec.Args), string(s.Spec.Input), s.Spec.Cwd, s.Jitter.String()}
		if got != w {
			t.Errorf("entry %d:\n got %q\nwant %q", i, got, w)
		}
	}
	env := list[0].Schedule.Spec.Env
	testkit.Equal(t, "env[NAME]", env["NAME"], " two words ")
	testkit.Equal(t, "env[PATH]", env["PATH"], "/usr/local/bin:/usr/bin")
	testkit.Equal(t, "env[SHELL]", env["SHELL"], "")
	env = list[1].Schedule.Spec.Env
	testkit.Equal(t, "env[SHELL]", env["SHELL"], "/bin/bash")
	testkit.Equal(t, "env[HOME]", env["HOME"], "/srv")
	testkit.Equal(t, "env[MAILTO]", env["MAILTO"], "")
	testkit.Equal(t, "on_output", list[0].Schedule.Spec.OnOutput, mailHook("ann@example.com"))
}

func TestCrontabNames(t *testing.T) {
	for script, want := range map[string]string{
		"/usr/local/bin/backup.sh --full /srv >/dev/null 2>&1": "backup.sh-full-srv",
		"cd /srv/app && ./bin/report --days 7":                 "report-days-7",
		"cd /srv/app; make":                                    "make",
		"LANG=C TZ=UTC certbot renew -q":                       "certbot-renew-q",
		"[ -x /usr/bin/x ] && x":                               "x-usr-bin-x",
		"(sleep 5; date)":                                      "sleep",
		"ÄÖÜ":                                                  "command",
		"...":                                                  "command",
		"a=b":                                                  "a-b",
		strings.Repeat("long ", 30):                            "long-long-long-long-long-long-long-long",
		"php -r 'echo 1;' | mail":                              "php-r-echo",
	} {
		if got := nameOf("", script); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
		if name := nameOf("p.", script); taskspec.ValidSchedule(name) != nil {
			t.Errorf("got the name %q, want a valid name of a schedule", name)
		}
	}
	names := ""
	for _, e := range (Crontab{Zone: "UTC", Home: "/"}).Parse("0 8 * * * feed\n0 20 * * * feed\n1 0 * * * feed 2\n") {
		testkit.NoError(t, e.Err)
		names += e.Schedule.Name + " "
	}
	testkit.Equal(t, "names of lines with one command", names, "feed feed-2 feed-2-2 ")
}

func TestInvalidCrontabLinesAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"0 0 * * *\n":     `invalid entry "0 0 * * *"; use five fields (or @daily and the like), then a command`,
		"0 0 * * *  %x\n": `missing command after "0 0 * * *"`,
		"nonsense\n":      `invalid entry "nonsense"; use five fields (or @daily and the like), then a command`,
		"17 * * * * root cd / && x\n": `"root" is not a command: this looks like a system crontab, with a column for the user; ` +
			`add --system`,
		"SHELL=bash\n":     `SHELL "bash" is not an absolute path`,
		"RANDOM_DELAY=x\n": `invalid RANDOM_DELAY "x"; use minutes (0-1440)`,
		"0 0 * * * \xff\n": "not UTF-8, or contains a NUL byte",
	} {
		list := Crontab{Zone: "UTC", Home: "/"}.Parse(text)
		if len(list) != 1 || list[0].Line != 1 || !errors.Is(list[0].Err, jobs.ErrInvalid) || list[0].Err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", text, list, want)
		}
	}
}

func TestEveryInvalidLineIsReported(t *testing.T) {
	got := ""
	for _, e := range (Crontab{Zone: "UTC", Home: "/"}).Parse("nonsense\n0 0 * * *\nSHELL=sh\n0 0 * * * b\n") {
		got += fmt.Sprintf("%d %t ", e.Line, e.Err != nil)
	}
	testkit.Equal(t, "lines and whether they are refused", got, "1 true 2 true 3 true 4 false ")
}

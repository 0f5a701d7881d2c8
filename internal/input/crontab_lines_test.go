package input

import (
	"fmt"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/test/testkit"
)

// machine has the users of a small server.
var machine = Crontab{Zone: "UTC", Home: "/home/ann", User: "ann",
	HomeOf: func(user string) (string, bool) {
		home, ok := map[string]string{"root": "/root", "www-data": "/var/www", "list": "/var/list", "backup": "/var/backups",
			"mail": "/var/mail"}[user]
		return home, ok
	},
}

// asRoot is machine for root, who imports the entries of all users.
func asRoot() Crontab {
	o := machine
	o.System, o.User, o.Home, o.Root = true, "root", "/root", true
	return o
}

// describe returns a line for each entry.
func describe(list []Entry) string {
	var text strings.Builder
	for _, e := range list {
		if e.Err != nil {
			fmt.Fprintf(&text, "refused line %d: %v\n", e.Line, e.Err)
			continue
		}
		argv, _ := taskspec.Argv(e.Schedule.Spec.Args)
		fmt.Fprintf(&text, "%s | %s", e.Schedule.Cron, strings.Join(argv[2:], " "))
		if user := e.Schedule.Spec.User; user != "" {
			fmt.Fprintf(&text, " | user %s in %s", user, e.Schedule.Spec.Cwd)
		}
		text.WriteString("\n")
	}
	return text.String()
}

const (
	sixth  = " looks like a sixth time field; use minute, hour, day of month, month, day of week, then the command"
	column = " is not a command: this looks like a system crontab, with a column for the user; add --system"
)

func TestEachShapeOfLine(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// A column for the user.
		{"17 * * * *\troot\tcd / && x", `refused line 1: "root"` + column},
		{"17 * * * * root  cd / && x", `refused line 1: "root"` + column},
		{"@daily backup --full", "@daily | backup --full"},
		{"@daily /bin/root x", "@daily | /bin/root x"},
		// More than five fields.
		{"*/5 * * * * * * echo hi", `refused line 1: "*"` + sixth},
		{"0 0 3 * * * /bin/echo nightly", `refused line 1: "*"` + sixth},
		{"0 3 * * * 7z a x", "0 3 * * * | 7z a x"},
		{"0 3 * * * 2to3 x", "0 3 * * * | 2to3 x"},
		// Tests.
		{"@daily test -x /usr/bin/x && x -q", "@daily | test -x /usr/bin/x && x -q"},
		{"@daily [ -x /x ] && /x", "@daily | [ -x /x ] && /x"},
		{"@daily command -v x >/dev/null && x", "@daily | command -v x >/dev/null && x"},
		{"@daily test -x /x || y && z", "@daily | test -x /x || y && z"},
		{"@daily if [ -x /x ] && true; then x; fi", "@daily | if [ -x /x ] && true; then x; fi"},
		{"@daily [ -x /x ] && /x || true", "@daily | [ -x /x ] && /x || true"},
		// The - of cronie, and options of other crons.
		{"-*/5 * * * * x", "*/5 * * * * | x"},
		{"-@daily x", "@daily | x"},
		{"-0 4 * * * x", "0 4 * * * | x"},
		{"0 4 * * * -n x", `refused line 1: the command begins with "-n", an option that only other crons know`},
		// Steps as long as the field.
		{"*/60 * * * * x", "*/60 * * * * | x"},
		{"0 */24 * * * x", "0 */24 * * * | x"},
		// The rest.
		{"@reboot x", "@reboot | x"},
		{"@daily\tx  y", "@daily | x  y"},
		{"09 08 * * 1-5 x", "09 08 * * 1-5 | x"},
		{"* * * * * date +\\%d%in", "* * * * * | date +%d"},
		{"* * * * *", `refused line 1: invalid entry "* * * * *"; use five fields (or @daily and the like), then a command`},
	} {
		if got := strings.TrimSuffix(describe(machine.Parse(test.line)), "\n"); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.line, got, test.want)
		}
	}
}

func TestSystemCrontabHasColumnForUser(t *testing.T) {
	const text = "17 * * * *\troot    cd / && run-parts x\n@daily www-data clean\n@daily nosuch x\n0 0 * * * root\n0 0 3 * * * root x\n"
	got := describe(asRoot().Parse(text))
	testkit.Equal(t, "as root", got, "17 * * * * | cd / && run-parts x\n@daily | clean | user www-data in /var/www\n"+
		"refused line 3: unknown user \"nosuch\"\nrefused line 4: missing command after \"0 0 * * *\"\n"+
		"refused line 5: unknown user \"*\"\n")
	o := machine
	o.System, o.User = true, "www-data"
	got = describe(o.Parse(text))
	testkit.Equal(t, "as www-data", got,
		"refused line 1: the entry is of user \"root\", not \"www-data\"; import it as root or as that user\n@daily | clean\n"+
			"refused line 3: the entry is of user \"nosuch\", not \"www-data\"; import it as root or as that user\n"+
			"refused line 4: missing command after \"0 0 * * *\"\n"+
			"refused line 5: the entry is of user \"*\", not \"www-data\"; import it as root or as that user\n")
	list := asRoot().Parse("HOME=/srv\n@daily www-data x")
	testkit.Equal(t, "directory with HOME", list[0].Schedule.Spec.Cwd, "/srv")
}

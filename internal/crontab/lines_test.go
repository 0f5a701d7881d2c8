package crontab

import (
	"fmt"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// machine has the users of a small server.
var machine = Options{Zone: "UTC", Home: "/home/ann", User: "ann",
	HomeOf: func(user string) (string, bool) {
		home, ok := map[string]string{"root": "/root", "www-data": "/var/www", "list": "/var/list", "backup": "/var/backups",
			"mail": "/var/mail"}[user]
		return home, ok
	},
}

// asRoot is machine for root, who imports the entries of all users.
func asRoot() Options {
	o := machine
	o.System, o.User, o.Home, o.Root = true, "root", "/root", true
	return o
}

// describe returns a line for each schedule and refused line.
func describe(tab Table) string {
	var text strings.Builder
	for i := range tab.Schedules {
		s := &tab.Schedules[i]
		argv, _ := taskspec.Argv(s.Spec.Args)
		fmt.Fprintf(&text, "%s | %s", s.Cron, strings.Join(argv[2:], " "))
		if s.Spec.User != "" {
			fmt.Fprintf(&text, " | user %s in %s", s.Spec.User, s.Spec.Cwd)
		}
		if s.Spec.LeaveChildren {
			text.WriteString(" | leaves children")
		}
		text.WriteString("\n")
	}
	for _, err := range tab.Refused {
		fmt.Fprintf(&text, "refused %v\n", err)
	}
	return text.String()
}

const (
	sixth  = " looks like a sixth time field; use minute, hour, day of month, month, day of week, then the command"
	column = " is not a command: this looks like a system crontab, with a column for the user; add --system"
)

func TestEachShapeOfALine(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// A column for the user.
		{"17 * * * *\troot\tcd / && x", `refused line 1: "root"` + column},
		{"17 * * * * root  cd / && x", `refused line 1: "root"` + column},
		{"@daily backup --full", "@daily | backup --full"},
		{"@daily /bin/root x", "@daily | /bin/root x"},
		// More than five fields.
		{"*/5 * * * * * * echo hi", `refused line 1: "*"` + sixth},
		{"0 0 3 * * * /bin/echo nightly", `refused line 1: "*"` + sixth},
		{"0 30 9 ? * MON-FRI report", `refused line 1: "MON-FRI"` + sixth},
		{"0 0 12 1 1 ? 2030 x", `refused line 1: "?"` + sixth},
		{"0 15 10 * * 6L x", `refused line 1: "6L"` + sixth},
		{"0 0 12 1 * L x", `refused line 1: "L"` + sixth},
		{"0 15 10 * * FRIL x", `refused line 1: "FRIL"` + sixth},
		{"0 15 10 * * MON#2 x", `refused line 1: "MON#2"` + sixth},
		{"0 0 3 * * 1,5 x", `refused line 1: "1,5"` + sixth},
		{"0 3 * * * 7z a x", "0 3 * * * | 7z a x"},
		{"0 3 * * * sun -x", `refused line 1: "sun"` + sixth},
		{"0 3 * * * 2to3 x", "0 3 * * * | 2to3 x"},
		// A command in the background.
		{"@daily daemon &", "@daily | daemon & | leaves children"},
		{"@daily a & b", "@daily | a & b | leaves children"},
		{"@daily echo 'a & b' \"c & d\" >&2 && e 2>&1", "@daily | echo 'a & b' \"c & d\" >&2 && e 2>&1"},
		{"@daily [ -d /run ] || atop.daily&", "@daily | [ -d /run ] || atop.daily& | leaves children"},
		{"@daily (a & b &)", "@daily | (a & b &) | leaves children"},
		{"@daily a >/dev/null 2>&1", "@daily | a >/dev/null 2>&1"},
		{"@daily a && b", "@daily | a && b"},
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
		{"@every 90s\tx  y", "@every 90s | x  y"},
		{"09 08 * * 1-5 x", "09 08 * * 1-5 | x"},
		{"* * * * * date +\\%d%in", "* * * * * | date +%d"},
		{"* * * * *", `refused line 1: invalid entry "* * * * *"; use five fields (or @daily and the like), then a command`},
	} {
		if got := strings.TrimSuffix(describe(Parse(test.line, machine)), "\n"); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.line, got, test.want)
		}
	}
}

func TestASystemCrontabHasAColumnForTheUser(t *testing.T) {
	const text = "17 * * * *\troot    cd / && run-parts x\n@daily www-data clean\n@daily nosuch x\n0 0 * * * root\n0 0 3 * * * root x\n"
	got := describe(Parse(text, asRoot()))
	testkit.Equal(t, "as root", got, "17 * * * * | cd / && run-parts x\n@daily | clean | user www-data in /var/www\n"+
		"refused line 3: unknown user \"nosuch\"\nrefused line 4: missing command after \"0 0 * * *\"\n"+
		"refused line 5: \"*\""+sixth+"\n")
	o := machine
	o.System, o.User = true, "www-data"
	got = describe(Parse(text, o))
	testkit.Equal(t, "as www-data", got, "@daily | clean\n"+
		"refused line 1: the entry is of user \"root\", not \"www-data\"; import it as root or as that user\n"+
		"refused line 3: the entry is of user \"nosuch\", not \"www-data\"; import it as root or as that user\n"+
		"refused line 4: missing command after \"0 0 * * *\"\nrefused line 5: \"*\""+sixth+"\n")
	tab := Parse("HOME=/srv\n@daily www-data x", asRoot())
	testkit.Equal(t, "directory with HOME", tab.Schedules[0].Spec.Cwd, "/srv")
}

// TestNamesStayWithTheirLines removes, changes and adds lines with the same
// command. Each line keeps the name that it has in the database.
func TestNamesStayWithTheirLines(t *testing.T) {
	names := func(have []jobs.Schedule, text string) (tab Table, list string) {
		tab = Parse(text, machine)
		tab.Rename(have)
		for _, s := range tab.Schedules {
			list += s.Cron[:strings.IndexByte(s.Cron, ' ')] + "=" + s.Name + " "
		}
		return tab, list
	}
	first, list := names(nil, "1 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n")
	testkit.Equal(t, "names", list, "1=dup 2=dup-2 3=dup-2-2 ")
	for text, want := range map[string]string{
		"1 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n":                "1=dup 2=dup-2 3=dup-2-2 ",
		"2 0 * * * dup\n3 0 * * * dup 2\n":                               "2=dup-2 3=dup-2-2 ",
		"9 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n":                "9=dup 2=dup-2 3=dup-2-2 ",
		"0 0 * * * dup\n1 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n": "0=dup-3 1=dup 2=dup-2 3=dup-2-2 ",
		"3 0 * * * dup 2\n2 0 * * * dup\n1 0 * * * dup\n":                "3=dup-2-2 2=dup-2 1=dup ",
	} {
		_, list := names(first.Schedules, text)
		testkit.Equal(t, "names", list, want)
	}
}

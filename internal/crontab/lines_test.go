package crontab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// machine has the users and the programs of a small server.
var machine = Options{Zone: "UTC", Home: "/home/ann", User: "ann", Host: "web1",
	HomeOf: func(user string) (string, bool) {
		home, ok := map[string]string{"root": "/root", "www-data": "/var/www", "list": "/var/list", "backup": "/var/backups",
			"mail": "/var/mail"}[user]
		return home, ok
	},
	HasProgram: func(name, path string) bool {
		return name == "mail" || name == "sat" || name == "backup" && path == "/opt/bin"
	},
}

// asRoot is machine for root, who imports the entries of all users.
func asRoot() Options {
	o := machine
	o.System, o.User, o.Home, o.Root = true, "root", "/root", true
	return o
}

// describe returns a line for each schedule, refused line and note.
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
	for _, note := range tab.Notes {
		fmt.Fprintf(&text, "note %v %s\n", note.Lines, note.Text)
	}
	return text.String()
}

const (
	sixth      = " looks like a sixth time field; use minute, hour, day of month, month, day of week, then the command"
	column     = " is not a command: this looks like a system crontab, with a column for the user; add --system"
	background = "a command stays in the background (&), so its process lives on (--leave-children); send its output to a file"
	condition  = "if the test before && is false, the task counts as failed; write: if TEST; then COMMAND; fi"
	others     = "entries of other users: their worker must run as root"
)

func TestEachShapeOfALine(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// A column for the user.
		{"17 * * * *\troot\tcd / && x", `refused line 1: "root"` + column},
		{"17 * * * * root  cd / && x", `refused line 1: "root"` + column},
		{"17 * * * * www-data\tclean", `refused line 1: "www-data"` + column},
		{"@daily list clean", `refused line 1: "list"` + column},
		{"@daily mail -s x ann", "@daily | mail -s x ann"}, // a user and a program
		{"@daily backup", "@daily | backup"},
		{"@daily backup --full", "@daily | backup --full"}, // no user is followed by an option
		{"@daily backup >/dev/null", "@daily | backup >/dev/null"},
		{"@daily backup full", `refused line 1: "backup"` + column},
		{"PATH=/opt/bin\n@daily backup full", "@daily | backup full"},
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
		{"0 3 * * * sat -x", "0 3 * * * | sat -x"}, // a program
		{"0 3 * * * sun -x", `refused line 1: "sun"` + sixth},
		{"0 3 * * * 2to3 x", "0 3 * * * | 2to3 x"},
		// A command in the background.
		{"@daily daemon &", "@daily | daemon & | leaves children\nnote [1] " + background},
		{"@daily a & b", "@daily | a & b | leaves children\nnote [1] " + background},
		{"@daily echo 'a & b' \"c & d\" >&2 && e 2>&1", "@daily | echo 'a & b' \"c & d\" >&2 && e 2>&1"},
		{"@daily [ -d /run ] || atop.daily&", "@daily | [ -d /run ] || atop.daily& | leaves children\nnote [1] " + background},
		{"@daily (a & b &)", "@daily | (a & b &) | leaves children\nnote [1] " + background},
		{"@daily a >/dev/null 2>&1", "@daily | a >/dev/null 2>&1"},
		{"@daily a && b", "@daily | a && b"},
		// Tests.
		{"@daily test -x /usr/bin/x && x -q", "@daily | test -x /usr/bin/x && x -q\nnote [1] " + condition},
		{"@daily [ -x /x ] && /x", "@daily | [ -x /x ] && /x\nnote [1] " + condition},
		{"@daily command -v x >/dev/null && x", "@daily | command -v x >/dev/null && x\nnote [1] " + condition},
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
		{"MAILFROM=a@x;rm", `refused line 1: invalid MAILFROM "a@x;rm"; use an address such as cron@example.com`},
	} {
		if got := strings.TrimSuffix(describe(Parse(test.line, machine)), "\n"); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.line, got, test.want)
		}
	}
}

// TestRandomTimesAreStable checks the random ranges of cronie.
func TestRandomTimesAreStable(t *testing.T) {
	const line = "~ 0~3 ~ * 1~5,6 "
	seen := map[string]bool{}
	for i := range 40 {
		text := line + fmt.Sprint("job", i)
		got := Parse(text, machine).Schedules[0].Cron
		testkit.Equal(t, "the same line again", Parse("# x\n"+text, machine).Schedules[0].Cron, got)
		var m, h, d, w, six int
		n, err := fmt.Sscanf(strings.ReplaceAll(got, ",", " "), "%d %d %d * %d %d", &m, &h, &d, &w, &six)
		if err != nil || n != 5 || m < 0 || m > 59 || h < 0 || h > 3 || d < 1 || d > 28 || w < 1 || w > 5 || six != 6 {
			t.Errorf("%q: got %q, want values in the ranges", line, got)
		}
		seen[got] = true
	}
	if len(seen) < 30 {
		t.Errorf("got %d different times of 40 jobs, want at least 30", len(seen))
	}
	other := machine
	other.Host = "web2"
	if a, b := Parse(line+"x", machine).Schedules[0].Cron, Parse(line+"x", other).Schedules[0].Cron; a == b {
		t.Errorf("two machines: got %q twice, want different times", a)
	}
	for _, field := range []string{"0~60", "9~3", "~/10", "a~b", "-1~3", "0~~3"} {
		testkit.Equal(t, "picked of "+field, Pick([]string{field, "*", "*", "*", "*"}, "")[0], field)
	}
}

func TestMailFrom(t *testing.T) {
	tab := Parse("MAILTO=a@x\nMAILFROM=b@y\n@daily x\nMAILFROM=\n@daily y", machine)
	testkit.Equal(t, "hook", tab.Schedules[0].Spec.OnOutput, mailHook("a@x", "b@y"))
	if hook := mailHook("a@x", "b@y"); !strings.HasPrefix(hook, `{ printf 'From: b@y\nTo: a@x\nSubject: `) {
		t.Errorf("got hook %q, want one with From and To", hook)
	}
	testkit.Equal(t, "hook without a sender", tab.Schedules[1].Spec.OnOutput, mailHook("a@x", ""))
}

func TestASystemCrontabHasAColumnForTheUser(t *testing.T) {
	const text = "17 * * * *\troot    cd / && run-parts x\n@daily www-data clean\n@daily nosuch x\n0 0 * * * root\n0 0 3 * * * root x\n"
	got := describe(Parse(text, asRoot()))
	testkit.Equal(t, "as root", got, "17 * * * * | cd / && run-parts x\n@daily | clean | user www-data in /var/www\n"+
		"refused line 3: unknown user \"nosuch\"\nrefused line 4: missing command after \"0 0 * * *\"\n"+
		"refused line 5: \"*\""+sixth+"\nnote [2] "+others+"\n")
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
	have := slices.Clone(first.Schedules)
	for text, want := range map[string]struct{ names, gone string }{
		"1 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n":                {"1=dup 2=dup-2 3=dup-2-2 ", ""},
		"2 0 * * * dup\n3 0 * * * dup 2\n":                               {"2=dup-2 3=dup-2-2 ", "dup"},
		"9 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n":                {"9=dup 2=dup-2 3=dup-2-2 ", ""},
		"0 0 * * * dup\n1 0 * * * dup\n2 0 * * * dup\n3 0 * * * dup 2\n": {"0=dup-3 1=dup 2=dup-2 3=dup-2-2 ", ""},
		"3 0 * * * dup 2\n2 0 * * * dup\n1 0 * * * dup\n":                {"3=dup-2-2 2=dup-2 1=dup ", ""},
		"5 0 * * * other\n": {"5=other ", "dup dup-2 dup-2-2"},
	} {
		tab, list := names(have, text)
		testkit.Equal(t, "names", list, want.names)
		testkit.Equal(t, "gone", strings.Join(tab.Gone(have, ""), " "), want.gone)
	}
	own := have[0]
	own.Name = "mine" // not the name that an import would give
	testkit.Len(t, "gone, with a schedule of another name", (&Table{}).Gone([]jobs.Schedule{own}, ""), 0)
	testkit.Len(t, "gone, with another prefix", (&Table{}).Gone(have, "web1."), 0)
}

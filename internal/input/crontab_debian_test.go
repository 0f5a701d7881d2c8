package input

import (
	"fmt"
	"strings"
	"testing"

	"example.com/runner/internal/taskspec"
	"example.com/runner/test/testkit"
)

// cronD has files in the shapes that packages put into /etc/cron.d. The text
// want has the times, the first word of the command and the user for each
// entry, or the line and the error.
var cronD = []struct{ name, text, want string }{
	{"crontab",
		"SHELL=/bin/sh\nPATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin\n\n" +
			"# m h dom mon dow user\tcommand\n" +
			"17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n" +
			"25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }\n" +
			"52 6\t1 * *\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.monthly )\n",
		"17 * * * * cd; 25 6 * * * test; 52 6 1 * * test"},
	{"anacron",
		"30 7-23 * * *   root\t[ -x /etc/init.d/anacron ] && if [ ! -d /run/systemd/system ]; then" +
			" invoke-rc.d anacron start >/dev/null; fi\n",
		"30 7-23 * * * ["},
	{"atop",
		"PATH=/bin:/usr/bin\n# daily restart\n" +
			"0 0 * * * root [ -d \"/run/systemd/system\" ] || /usr/share/atop/atop.daily&\n",
		"0 0 * * * ["},
	{"awstats",
		"MAILTO=root\n\n" +
			"*/10 * * * * www-data [ -x /usr/share/awstats/update.sh ] && /usr/share/awstats/update.sh\n",
		"*/10 * * * * [ as www-data"},
	{"cacti",
		"MAILTO=root\n" +
			"*/5 * * * * www-data php --define suhosin.memory_limit=512M /usr/share/cacti/poller.php" +
			" 2>&1 >/dev/null | tee -a log\n",
		"*/5 * * * * php as www-data"},
	{"certbot",
		"SHELL=/bin/sh\nPATH=/usr/sbin:/usr/bin\n" +
			"0 */12 * * * root test -x /usr/bin/certbot -a \\! -d /run/systemd/system && perl -e" +
			" 'sleep int(rand(43200))' && certbot -q renew --no-random-sleep-on-renew\n",
		"0 */12 * * * test"},
	{"clamav-unofficial-sigs",
		"45 * * * * root [ -x /usr/sbin/unofficial-sigs ] && /usr/bin/bash /usr/sbin/unofficial-sigs > /dev/null || true\n",
		"45 * * * * ["},
	{"cron-apt",
		"0 4\t* * *\troot\ttest -x /usr/sbin/cron-apt && /usr/sbin/cron-apt\n" +
			"# 0 * * * * root x /etc/cron-apt/config2\n",
		"0 4 * * * test"},
	{"e2scrub_all",
		"30 3 * * 0 root test -e /run/systemd/system || SERVICE_MODE=1 /usr/lib/e2fsprogs/e2scrub_all_cron\n" +
			"10 3 * * * root test -e /run/systemd/system || SERVICE_MODE=1 /sbin/e2scrub_all -A -r\n",
		"30 3 * * 0 test; 10 3 * * * test"},
	{"ganeti",
		"PATH=/sbin:/bin\n*/5 * * * * root [ -x /usr/sbin/ganeti-watcher ] && /usr/sbin/ganeti-watcher\n" +
			"45 1 * * * nosuch-user [ -x /usr/sbin/ganeti-cleaner ] && /usr/sbin/ganeti-cleaner master\n",
		"*/5 * * * * [; line 3: unknown user \"nosuch-user\""},
	{"logcheck",
		"PATH=/bin\nMAILTO=root\n\n" +
			"@reboot         list    if [ -x /usr/sbin/logcheck ]; then nice -n10 /usr/sbin/logcheck -R; fi\n" +
			"2 * * * *       list    if [ -x /usr/sbin/logcheck ]; then nice -n10 /usr/sbin/logcheck; fi\n",
		"@reboot if as list; 2 * * * * if as list"},
	{"mailman3",
		"# digests\n0 8 * * * list [ -x /usr/bin/mailman ] && /usr/bin/mailman notify\n" +
			"0 12 * * *  list  [ -x /usr/bin/mailman ] && /usr/bin/mailman digests --periodic\n",
		"0 8 * * * [ as list; 0 12 * * * [ as list"},
	{"mdadm",
		"57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && [ $(date +\\%d) -le 7 ]; then" +
			" checkarray --cron --all --idle --quiet; fi\n",
		"57 0 * * 0 if"},
	{"munin",
		"MAILTO=root\n\n@reboot root if [ ! -d /run/munin ]; then install -d -o munin /run/munin; fi\n" +
			"*/5 * * * * www-data if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi\n" +
			"14 10 * * * www-data if [ -x x ]; then x --removeok; fi\n",
		"@reboot if; */5 * * * * if as www-data; 14 10 * * * if as www-data"},
	{"ntpsec",
		"23 */2 * * * root [ -d /run/systemd/system ] || /usr/libexec/ntpsec/rotate-stats\n",
		"23 */2 * * * ["},
	{"php",
		"# clean sessions\n" +
			"09,39 *     * * *     root   [ -x /usr/lib/php/sessionclean ] && if [ ! -d" +
			" /run/systemd/system ]; then /usr/lib/php/sessionclean; fi\n",
		"09,39 * * * * ["},
	{"roundcube-core",
		"0 5 * * *     www-data  php /usr/share/roundcube/bin/cleandb.sh > /dev/null\n",
		"0 5 * * * php as www-data"},
	{"rsnapshot",
		"# 0 */4\t* * *\t\troot\t/usr/bin/rsnapshot alpha\n" +
			"# 30 3  \t* * *\t\troot\t/usr/bin/rsnapshot beta\n",
		""},
	{"sysstat",
		"PATH=/usr/lib/sysstat:/bin\n\n" +
			"5-55/10 * * * * root command -v debian-sa1 > /dev/null && debian-sa1 1 1\n" +
			"59 23 * * * root command -v debian-sa1 > /dev/null && debian-sa1 60 2\n",
		"5-55/10 * * * * command; 59 23 * * * command"},
	{"tiger",
		"0 * * * *   root    test -x /usr/sbin/tigercron && { [ -r \"$DEFAULT\" ] && . \"$DEFAULT\"" +
			" ; nice -n$NICETIGER tigercron -q ; }\n",
		"0 * * * * test"},
	{"popularity-contest",
		"SHELL=/bin/sh\nPATH=/usr/bin\n" +
			"38 0 * * *   root    test -x /etc/cron.daily/popcon && /etc/cron.daily/popcon --crond\n",
		"38 0 * * * test"},
	{"0hourly",
		"SHELL=/bin/bash\nPATH=/sbin:/bin\nMAILTO=\"\"\n01 * * * * root run-parts /etc/cron.hourly\n",
		"01 * * * * run-parts"},
	{"suse",
		"-*/15 * * * *   root  test -x /usr/lib/cron/run-crons && /usr/lib/cron/run-crons >/dev/null 2>&1\r\n",
		"*/15 * * * * test"},
	{"seconds",
		"0 */5 * * * * root curl -fsS https://example.com/ping\n",
		"line 1: unknown user \"*\""},
	{"no-user",
		"15 4 * * * /usr/local/bin/nightly --all\n",
		"line 1: unknown user \"/usr/local/bin/nightly\""},
}

func TestFilesOfCronD(t *testing.T) {
	for _, file := range cronD {
		var got []string
		for _, e := range asRoot().Parse(file.text) {
			if e.Err != nil {
				got = append(got, fmt.Sprintf("line %d: %v", e.Line, e.Err))
				continue
			}
			argv, err := taskspec.Argv(e.Schedule.Spec.Args)
			testkit.NoError(t, err)
			text := e.Schedule.Cron + " " + strings.Fields(argv[2])[0]
			if user := e.Schedule.Spec.User; user != "" {
				text += " as " + user
			}
			got = append(got, text)
		}
		if got := strings.Join(got, "; "); got != file.want {
			t.Errorf("%s:\n got %s\nwant %s", file.name, got, file.want)
		}
	}
}

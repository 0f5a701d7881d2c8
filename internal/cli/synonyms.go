package cli

// scheduleAddForm is an example of the shortest "schedule add".
const scheduleAddForm = "runner schedule add NAME --cron EXPR -- COMMAND"

// CommandSynonym helps users who type a command of another tool.
type CommandSynonym struct {
	Hint  string // command line of runner to use instead; two command lines, six spaces apart, if Names can mean two things
	Names string // commands of other tools, separated by ", "; a command may have two words
}

// CommandSynonyms lists the commands of other tools.
var CommandSynonyms = []CommandSynonym{
	// These are hints for commands in the group Run.
	{"runner run -- COMMAND", "exec, execute, srun"},
	{"runner enqueue -- COMMAND", "add, push, submit, new, create, put, sbatch, qsub, queue --, queue add"},
	{"runner enqueue --at TIME -- COMMAND", "at"},
	{"runner enqueue --in DUR -- COMMAND", "defer"},
	{"runner enqueue --batch FILE", "batch, import"},
	{"runner enqueue --each -- COMMAND {}", "xargs, each, foreach, map"},
	{"runner work", "daemon, worker, consume, pueued, celery"},
	{"runner work      systemctl start runner", "start"},
	{"runner enqueue --each -- COMMAND {}      runner work --concurrency N", "parallel"},
	{"runner schedule --help", "cron, crontab, timer, cronjob"},
	{scheduleAddForm, "every, crontab -e, schedule create, schedule new, schedule set"},
	{"runner schedule list", "crontab -l, timers, list-timers, schedules, periodic"},
	{"runner schedule add NAME --replace --cron EXPR -- COMMAND", "schedule edit, schedule update"},
	{"runner schedule remove NAME", "schedule delete, schedule del"},
	{"runner schedule pause NAME", "schedule disable, schedule stop, schedule suspend"},
	{"runner schedule resume NAME", "schedule enable, schedule start, schedule unpause"},
	{"runner schedule run NAME", "schedule trigger, trigger"},
	{"runner schedule show NAME", "schedule inspect, schedule info, schedule next"},

	// These are hints for commands in the group Inspect.
	{"runner list", "ps, jobs, job, tasks, task, atq, squeue, qstat, history"},
	{"runner show ID", "inspect, view, describe, why"},
	{"runner show ID      runner list", "get"},
	{"runner show ID      runner status", "info"},
	{"runner logs ID", "log, journal, journalctl, output, cat"},
	{"runner logs -f ID", "follow, tail, attach"},
	{"runner status -f", "htop, monitor, monit"},
	{"runner status -f      runner logs -f ID", "watch"},
	{"runner status", "stats, stat, queue, queues, workers, group, groups, summary"},
	{"runner status", "queue ls, queue list, queues ls, queues list, worker ls, worker list, workers list"},

	// These are hints for commands in the group Control.
	{"runner cancel ID", "kill, abort, atrm, scancel, qdel, terminate"},
	{"runner cancel ID      systemctl stop runner", "stop, shutdown, halt, quit"},
	{"runner retry ID", "rerun, requeue, redo"},
	{"runner retry ID      systemctl restart runner", "restart"},
	{"runner edit ID", "modify, change, update, alter"},
	{"runner edit ID --first", "urgent, switch, prioritize, bump"},
	{"runner status -f      runner edit ID --first", "top"},
	{"runner pause ID", "hold, stash, qhold"},
	{"runner resume ID", "release, unstash, unhold, qrls"},
	{"runner delete ID", "remove, del"},
	{"runner delete --older-than DUR", "prune, clean, cleanup, gc"},
	{"runner cancel -s pending      runner delete --older-than DUR", "purge, clear, flush, drain"},
	{"runner pause -q QUEUE", "suspend"},
	{"runner resume -q QUEUE", "unpause, continue"},
	{"runner limit set TARGET", "throttle, limit add, semaphore, sem"},
	{"runner limit list", "limits, limit ls"},
	{"runner limit remove TARGET", "limit delete"},
	{"runner enqueue --on-failure CMD -- COMMAND      runner work --on-failure CMD",
		"hook, hooks, callback, notify, notification, notifications, alert"},

	// These are hints for commands in the group Maintain.
	{"runner doctor", "check, health, healthcheck, diagnose, fsck, du, df, disk, system df"},
	{"runner --version", "version, ver"},
	{"runner backup FILE", "dump, snapshot"},
	{"runner restore FILE", "recover, rollback, import db"},
	{"runner serve", "web, ui, webui, gui, dash, dashboard, server, http, metrics, flower"},
	{"runner service install", "install, systemd, startup, service enable"},
	{"runner service install      runner schedule resume NAME", "enable"},
	{"runner service uninstall", "uninstall, service disable, service remove"},
	{"runner service uninstall      runner schedule pause NAME", "disable"},
	{"systemctl start runner", "service start"},
	{"systemctl stop runner", "service stop"},
	{"systemctl restart runner", "service restart"},
	{"journalctl -u runner", "service logs, service log"},
}

// groupOf helps users of tools that have commands such as "task list". For a noun such as "cron" it returns the group of commands in
// runner, such as "schedule". The group is empty if the commands are in no group: "task list" is "runner list".
func groupOf(noun string) (group string, known bool) {
	switch noun {
	case "task", "tasks", "job", "jobs", "queue", "queues", "worker", "system":
		return "", true
	case "cron", "crontab", "cronjob", "timer", "timers", "schedules":
		return "schedule", true
	}
	return "", false
}

// OptionSynonym helps users who type an option of another tool.
type OptionSynonym struct {
	Commands string // commands for which the hint is useful, separated by ", "
	Hint     string // what to type instead: an option of runner, or a command line
	Names    string // options of other tools without their first dashes, separated by spaces
}

// These constants are lists of commands that have options in common.
const (
	newTask     = "enqueue, run, schedule add"
	selections  = "list, logs, wait, cancel, retry, pause, resume, delete"
	withRecords = "show, status, doctor, schedule list, schedule show, limit list"
	anyCommand  = "*"
)

// OptionSynonyms lists the options of other tools. The first row that fits counts.
var OptionSynonyms = []OptionSynonym{
	{"schedule add", scheduleAddForm, "name"},
	{"schedule add", "--cron '@every DUR'", "every interval"},
	{"schedule add", "--cron", "schedule spec expression expr on-calendar"},
	{"schedule add", "--zone", "timezone time-zone tz"},
	{"schedule add", "--replace", "force update upsert overwrite"},
	{"schedule add", "--overlap", "concurrency-policy no-overlap"},
	{"enqueue, run", scheduleAddForm, "cron every schedule interval on-calendar"},

	{newTask, "--label", "name n title tag tags L unit comment description job-name"},
	{newTask, "--in", "delay countdown defer process-in start-in"},
	{newTask, "--at", "eta run-at start-at start-time process-at scheduled-at begin when"},
	{newTask, "--after", "depends-on depends depend dependency dependencies dep deps needs requires a"},
	{newTask, "--expires-in", "expires ttl expire expiry discard-after"},
	{newTask, "--queue", "group g queue-name project partition tube topic channel"},
	{newTask, "--priority", "prio importance"},
	{newTask, "--lane", "lock mutex serial fifo concurrency-key sequence"},
	{newTask, "--unique", "unique-key unique-id dedup dedupe idempotency-key task-id"},
	{newTask, "--max-attempts N (the first attempt counts)", "retries retry max-retries max-retry retry-limit restarts"},
	{newTask, "--max-attempts", "attempts tries max-tries"},
	{newTask, "--backoff-delay", "retry-delay retry-wait retry-interval"},
	{newTask, "--on-failure CMD", "on-error on-fail notify-failure callback mail-on-failure"},
	{newTask, "--on-success CMD", "on-complete on-completion"},
	{newTask, "--timeout", "time-limit runtime-max max-runtime max-time hard-timeout"},
	{newTask, "--kill-after", "stop-timeout kill-timeout grace"},
	{newTask, "--cwd", "working-directory workdir working-dir dir directory chdir"},
	{newTask, "--env", "environment setenv variable"},
	{"enqueue", "--each (a task for each line)      --input - (one task reads it)", "stdin"},
	{"run", "runner run -- COMMAND", "stdin rm it t i"},
	{newTask, "--input", "stdin"},
	{newTask, "--memory", "mem-limit memory-limit memory-max mem-max max-memory ram"},
	{newTask, "--shell", "script sh bash c"},
	{newTask, "--job", "function func handler kind type"},
	{newTask, "--args", "payload params"},
	{"enqueue", "--paused", "hold stashed stash held H"},
	{"enqueue", "--each", "xargs lines each-line foreach I replace"},
	{"enqueue", "--label-each", "tagstring"},
	{"enqueue", "--batch", "file from-file bulk jsonl"},
	{"enqueue", "--wait", "sync block foreground fg follow attach watch"},
	{"run", "runner enqueue -- COMMAND", "d"},
	{"enqueue, run", "runner enqueue -- COMMAND", "detach background bg async no-wait"},
	{"run", "runner run -- COMMAND", "wait sync block foreground fg follow"},
	{"enqueue, run", "runner enqueue -- COMMAND", "command cmd exec"},

	{"work", "--until-empty", "once drain exit-when-empty exit-on-empty until-done oneshot one-shot stop-when-empty run-once burst"},
	{"work", "--concurrency", "workers jobs j parallel threads procs processes max-procs max-jobs slots max-workers num-workers P S"},
	{"work", "--queue", "queues queue-name group g Q"},
	{"work", "--serve", "web ui http dashboard listen port metrics"},
	{"work", "--grace", "shutdown-timeout stop-timeout drain-timeout"},
	{"work", "--log-level debug", "debug"},
	{"work", "--log-level warn", "quiet q silent s"},
	{"work", "runner service install", "daemon daemonize d detach background D"},

	{"cancel", "--now", "force f kill immediately 9"},
	{"delete", "--yes", "force f"},
	{"cancel, pause", "--reason", "message m comment"},
	{selections, "--state", "status states"},
	{selections, "--match", "grep search contains query"},
	{"logs", "--label TEXT or --schedule NAME", "unit u"},
	{selections, "--label", "name tag title"},
	{selections, "--queue", "group g queue-name"},
	{selections, "--job", "type kind function"},
	{selections, "--since", "from"},
	{selections, "--until", "to before"},
	{"list", "--rows", "limit lines L count max head tail size page-size per-page max-count"},
	{"list", "--all", "a A"},
	{"list", "--paused", "held hold"},
	{"list", "--wide", "long full l no-trunc"},
	{"list", "--json or --format TEMPLATE", "o output"},
	{"list", "runner status -f", "watch follow live"},
	{"logs", "--tail", "lines limit count last"},
	{"logs", "--follow", "watch w F live"},
	{"logs", "--attempt N", "previous p"},
	{"schedule run", "runner wait \"$(runner schedule run NAME)\"", "wait w sync"},

	{"status", "--follow", "watch w live refresh tail"},
	{"status", "runner list -s failed", "failed"},
	{"serve", "--listen", "port p addr address bind host b"},
	{"backup", "runner backup FILE", "o output file"},
	{"limit set", "--running", "max concurrency limit parallel"},
	{"pause", "--for", "duration until d"},

	{anyCommand, "--db", "database db-path dsn database-url db-url sqlite"},
	{anyCommand, "--color never", "no-color no-colour"},
	{anyCommand, "--color", "colour"},
	{withRecords, "--json", "format output o"},
	{anyCommand, "--verbose", "debug"},
}

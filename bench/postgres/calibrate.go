package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/internal/pgserver"
)

// point is an installation that the program measures: servers and workers on this computer, which share its processors.
type point struct {
	servers, processes, slots int
	nothingAhead              bool // whether a worker claims only tasks that it can start at once, so a transaction has few tasks
	feed                      load
}

// load says which tasks and which notifications reach the workers during a measurement.
type load int

const (
	drain   load = iota // all tasks are in the database before the workers start
	silence             // no tasks and no notifications
	notices             // only notifications that do not wake workers
	wakeups             // only notifications that wake workers; there is no task for them
	single              // tasks that arrive one by one
)

const loadEvery = 5 * time.Millisecond // pause between two events of a load

// figures are the results of a measurement. The times and the number of transactions are averages: per task of a drain, or per event of any
// other load.
type figures struct {
	rate           float64 // tasks or events per second
	server, worker float64 // processor time of the servers and of the workers, in microseconds
	messages       float64 // transactions of the servers
	others         float64 // share of the computer's processors that other programs used
}

// measure starts the servers, and then the workers at the same time. It returns the figures of n tasks or events.
func (p point) measure(ctx context.Context, n int) (f figures, err error) {
	var addresses []string
	tasks := n / p.servers * p.servers
	if p.feed != drain && p.feed != single {
		tasks = 1 // this load adds a single task, at its end; the measurement ends when that task has run
	}
	for i := range p.servers {
		server, err := pgserver.Start(ctx, settings...)
		if err != nil {
			return f, err
		}
		defer server.Close()
		address := server.Address("bench")
		if err := recreate(ctx, server.Address("postgres"), "bench"); err != nil {
			return f, err
		}
		q, err := systems[0].open(ctx, address, 1, nil)
		if err != nil {
			return f, err
		}
		defer q.close()
		addresses = append(addresses, address)
		each := tasks / p.servers
		for from := 0; p.feed == drain && from < each; from += 1000 {
			if err := q.addMany(ctx, payloads(i*each+from, min(1000, each-from))); err != nil {
				return f, err
			}
		}
	}
	of := systems[0]
	if p.nothingAhead {
		of = nothingAhead
	}
	w := crew{system: of.name, addresses: addresses, n: tasks, processes: p.processes, concurrency: p.slots}
	if p.feed != drain {
		w.feed = func(ctx context.Context) error { return p.load(ctx, addresses[0], n) }
	}
	began, machine := time.Now(), machineTime()
	before, err := usage(ctx, addresses)
	if err != nil {
		return f, err
	}
	took, err := w.work(ctx)
	if err != nil {
		return f, err
	}
	after, err := usage(ctx, addresses)
	each, server, worker := float64(n), after.server-before.server, after.worker-before.worker
	all := float64(time.Since(began).Microseconds()) * float64(runtime.NumCPU())
	others := max(float64((machineTime()-machine).Microseconds())-server-worker, 0) / all
	return figures{each / took.Seconds(), server / each, worker / each, (after.messages - before.messages) / each, others}, err
}

// load sends n events to a server whose workers are idle.
func (p point) load(ctx context.Context, address string, n int) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	q, err := systems[0].open(ctx, address, 1, nil)
	if err != nil {
		return err
	}
	defer q.close()
	time.Sleep(time.Second) // wait until all workers are idle
	for i := range n {
		switch p.feed {
		case notices:
			_, err = conn.Exec(ctx, "SELECT pg_notify('runner_runner', 'bench ends')")
		case wakeups:
			_, err = conn.Exec(ctx, "SELECT pg_notify('runner_runner', 'bench')")
		case single:
			err = q.add(ctx, newPayload(i))
		}
		if err != nil {
			return err
		}
		time.Sleep(loadEvery)
	}
	if p.feed == single {
		return nil
	}
	return q.add(ctx, newPayload(0))
}

// usage returns the processor times and transactions of servers, and the processor time of the workers that have ended. A session
// reports its transactions when it ends, so usage is exact after the workers have ended.
func usage(ctx context.Context, addresses []string) (f figures, err error) {
	f.worker = float64(treeTime(os.Getpid()).Microseconds())
	for _, address := range addresses {
		pid, err := serverPID(ctx, address)
		if err != nil {
			return f, err
		}
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return f, err
		}
		var n float64
		err = conn.QueryRow(ctx, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
		_ = conn.Close(ctx)
		if err != nil {
			return f, err
		}
		f.server, f.messages = f.server+float64(treeTime(pid).Microseconds()), f.messages+n
	}
	return f, nil
}

// idlers is the installation that shows the cost of notifications: one server with idle worker processes.
var idlers = point{servers: 1, processes: 16, slots: 10}

// calibration lists the installations whose drains calibrate uses to fit the model. In the first drain the workers claim nothing ahead of
// their slots, so each task needs two messages: one for its claim and one for its end. So this drain shows the cost of a message.
var calibration = []point{{servers: 1, processes: 1, slots: 1, nothingAhead: true}, {servers: 1, processes: 1, slots: 10},
	{servers: 1, processes: 1, slots: 25}, {servers: 1, processes: 1, slots: 100}}

// size returns the number of tasks or events of a measurement. It is smaller for slow measurements.
func (p point) size(short bool) int {
	n := 100_000
	if p.feed != drain {
		n = 1000
	} else if p.nothingAhead {
		n = 2000 * p.slots
	}
	if short {
		n /= 20
	}
	return n
}

// calibrate computes the costs of the model from measurements. Three loads of idle workers give the cost of a notice and of a claim without
// tasks. Drains with one server and one process give the cost of a message and of a task. For each drain, calibrate plots the processor
// time of a task over the number of messages of a task. It draws a straight line through the times of the server, and another line through
// the times of the workers. The slope of a line is the cost of a message, and its value at 0 is the cost of a task. At last, calibrate
// chooses the commit delay with which the model comes closest to the measured rates of the drains.
func calibrate(measured map[point]figures, silent, noticed, woken figures) (c costs) {
	micro := func(x float64) time.Duration { return time.Duration(max(x, 0) * float64(time.Microsecond)) }
	processes := float64(idlers.processes)
	notice, workerNotice := (noticed.server-silent.server)/(processes+1), (noticed.worker-silent.worker)/processes
	claims := max(woken.messages-noticed.messages, 1)
	c.serverNotice, c.workerNotice = micro(notice), micro(workerNotice)
	c.serverClaim, c.workerClaim = micro((woken.server-noticed.server)/claims), micro((woken.worker-noticed.worker)/claims)
	var messages, server, worker []float64
	for _, p := range calibration {
		d := measured[p]
		sent := 1 / notifyPause.Seconds() / d.rate // notifications per task; each takes two transactions: one sends it, one receives it
		messages = append(messages, max(d.messages-2*sent, 0))
		server, worker = append(server, d.server-2*sent*notice), append(worker, d.worker-sent*workerNotice)
	}
	slope, at := fitLine(messages, server)
	c.serverMessage, c.serverTask = micro(slope), micro(at)
	slope, at = fitLine(messages, worker)
	c.workerMessage, c.workerTask = micro(slope), micro(at)
	best, least := c, math.Inf(1)
	for c.commit = 0; c.commit <= 4*time.Millisecond; c.commit += 100 * time.Microsecond {
		miss := 0.0
		for _, p := range calibration {
			miss += math.Pow(math.Log(c.predict(p, p.size(false)/5, runtime.NumCPU()).rate/measured[p].rate), 2)
		}
		if miss < least {
			best, least = c, miss
		}
	}
	return best
}

// fitLine returns the straight line with the least squares, as its slope and its value at 0. The slope is not negative.
func fitLine(x, y []float64) (slope, at0 float64) {
	var mx, my, xy, xx float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	if xx > 0 {
		slope = max(xy/xx, 0)
	}
	return slope, my - slope*mx
}

// predict returns the figures of the model for a point with n tasks, on a computer with the given number of processors.
func (c costs) predict(p point, n, processors int) figures {
	pl := plan{costs: c, servers: p.servers, workers: p.processes, slots: p.slots, processors: processors,
		nothingAhead: p.nothingAhead, seed: 1}
	if p.feed == drain {
		pl.backlog = n / p.servers
	} else {
		pl.rate = 1 / loadEvery.Seconds()
		pl.until = time.Duration(n) * loadEvery
	}
	o := pl.run()
	of := float64(o.tasks)
	return figures{of / o.took.Seconds(), float64(o.serverTime.Microseconds()) / of, float64(o.workerTime.Microseconds()) / of,
		float64(o.messages) / of, 0}
}

// String returns a description of the point.
func (p point) String() string {
	plural := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	text := plural(p.servers, "server", "servers") + ", " + plural(p.processes, "process", "processes") + ", "
	switch {
	case p.feed == single:
		return text + "tasks arrive one by one"
	case p.nothingAhead:
		return text + plural(p.slots, "task", "tasks") + " at a time, none claimed ahead"
	case p.servers == p.processes && p.servers > 1:
		return text + plural(p.slots, "task", "tasks") + " at a time in each process"
	}
	return text + plural(p.slots, "task", "tasks") + " at a time"
}

package main

import "time"

// computer is a simulated computer: some processors, and one queue of jobs that wait for a processor.
type computer struct {
	sim  *simulation
	idle int // number of idle processors
	jobs fifo[job]
}

// job is work for a processor. A processor that begins with the job calls the function "start", which returns the processor time of the
// job. The function "end" is called when the job is done.
type job struct {
	start func() time.Duration
	end   func()
}

// do adds a job to the queue of the computer. When the job starts, do adds the processor time of the job to the parameter "total".
func (c *computer) do(total *time.Duration, start func() time.Duration, end func()) {
	c.jobs.add(job{func() time.Duration { cost := start(); *total += cost; return cost }, end})
	c.begin()
}

// begin begins the next job if a processor is idle.
func (c *computer) begin() {
	if c.idle == 0 || c.jobs.len() == 0 {
		return
	}
	c.idle--
	j := c.jobs.next()
	c.sim.after(j.start(), func() {
		c.idle++
		j.end()
		c.begin()
	})
}

package runner

import "time"

// Liveness is what Work reports while its loop turns: the loop has been to the database just now.
type Liveness struct {
	Running  int           // attempts
	Draining bool          // whether Work starts nothing more
	Left     time.Duration // Draining: until Work gives up the attempts that still run
}

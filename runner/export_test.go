package runner

import "time"

// MinLease is the shortest lease that is reliable on a busy machine.
const MinLease = 5 * time.Second

package harness

// The harness recognises these texts of runner in logs and records. A test
// checks that the source of runner still has them.
const (
	readyText      = "ready"                                                     // a worker logs this text when it has opened the database
	busyText       = "database is busy"                                          // a command reports this error and exits with status 75
	noServerText   = "no connection to"                                          // a process reports this error if the server is down
	lostCommitText = "the connection was lost during a commit"                   // error: it is unknown whether the commit succeeded
	noGuardianText = "it sent no hello"                                          // error of a worker whose guardian didn't start
	guardiansText  = "guardians in a row died before they had started a command" // error of a worker that stops because its guardians die
	abandonedText  = "its worker stopped, but the attempt did not"               // error of an attempt whose function outlived its worker
	lostText       = "its worker was lost"                                       // error of an attempt that another worker recorded as lost
)

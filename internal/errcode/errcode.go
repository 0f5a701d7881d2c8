// Package errcode lists the values of jobs.Error.Code. The packages that return
// errors do not know the command line; package ui adds advice that names its
// commands and flags.
package errcode

// Codes of package db: the file, the server and the files beside them.
const (
	BackupDirectory   = "backup_directory"    // the destination of a backup is a directory
	BackupExists      = "backup_exists"       // the destination of a backup already exists
	DanglingSymlink   = "dangling_symlink"    // the path is a symlink to a file that does not exist; `Subject` is the path of that file
	DiskFull          = "disk_full"           // the disk has no space left but what runner keeps free, or no inodes
	EmptyFile         = "empty_file"          // the file is empty, and this call does not create a database
	ExposedDatabase   = "exposed_database"    // other users may write the database file or its directory
	FileBound         = "file_bound"          // the file has reached `Options.MaxBytes`, and nothing is left to delete
	ForeignObject     = "foreign_object"      // another program has added a trigger or an index to one of runner's tables
	HardLinked        = "hard_linked"         // the database file has several names (hard links)
	IsDirectory       = "is_directory"        // the path is a directory
	LockTimeout       = "lock_timeout"        // another process held the write lock for too long
	MountPoint        = "mount_point"         // the database file itself is a mount point, not only its directory
	Moved             = "moved"               // the tasks were moved to another database
	MoveIncomplete    = "move_incomplete"     // another database is being moved into this one
	NetworkFilesystem = "network_filesystem"  // the file is on a network filesystem
	NewerSchema       = "newer_schema"        // a newer version of runner wrote the file
	NewerServer       = "newer_server_schema" // a newer version of runner wrote the tables on the server
	NoDatabase        = "no_database"         // the file does not exist, and this call does not create a database
	NoPath            = "no_path"             // the path is empty
	NoTables          = "no_tables"           // the server has no tables of runner, and this call does not create them
	NoTask            = "no_task"             // no task has this id; `Subject` is the id
	NotRunner         = "not_runner"          // the file is not a database of runner
	NoWriteAheadLog   = "no_wal"              // the filesystem does not support the write-ahead log
	OtherDriver       = "other_driver"        // the database handle or transaction belongs to another driver of database/sql
	StaleSnapshot     = "stale_snapshot"      // the transaction read before another one wrote; it can only be rolled back and repeated
	TaskRuns          = "task_runs"           // a database cannot be moved while a task is running; `Subject` is the id of a running task
	TokenDirectory    = "token_directory"     // other users may replace the token file
	TokenOwner        = "token_owner"         // the token file is not a regular file that only its owner may read or write
	UniqueKeyHolder   = "unique_key_holder"   // a new task would replace task `Subject`, but depends on this task or on a later task
)

// Codes of package runner.
const (
	NoCursor        = "no_cursor"        // no cursor over ended tasks has this name; `Subject` is the name
	NoLimit         = "no_limit"         // the queue, job or lane has no limit; `Subject` is the target, such as `queue:media`
	NoSchedule      = "no_schedule"      // no schedule has this name; `Subject` is the name
	NoTickFunction  = "no_tick_function" // only a program that calls `OnTick` can enqueue tasks of this schedule; `Subject` is its name
	ScheduleDiffers = "schedule_differs" // a schedule with this name has another definition
)

// Codes of package web. Subject is the address.
const (
	ListenAddress = "listen_address" // the address is neither HOST:PORT nor unix:PATH
	ListenFailed  = "listen_failed"  // the operating system does not let the process listen on this address
	PlainText     = "plain_text"     // the token would cross the network without encryption
	PublicURL     = "public_url"     // the public URL is not an http or https URL
	TokenMissing  = "token_missing"  // a TCP address requires a token, and there is none
)

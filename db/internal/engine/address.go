package engine

// Address is the parsed path or address of a database, which needn't exist.
type Address interface {
	// String returns the address for messages, without a password.
	String() string
	// Absolute returns the address in a form that doesn't depend on the working
	// directory.
	Absolute() (string, error)
	// LocalFile reports whether the database is a file of this host. Processes
	// of other hosts can open only the others.
	LocalFile() bool
	// CheckWriters returns an error of kind jobs.ErrPermission if any user
	// except root and uid has write access to the files of the database. It
	// opens nothing, accepts files that don't exist yet, and accepts a server,
	// which checks rights itself.
	CheckWriters(uid int) error
	// HasPassword reports whether the address includes a password.
	HasPassword() bool
	// Engine returns the engine for the database. It opens nothing.
	Engine(o Options) (Engine, error)
}

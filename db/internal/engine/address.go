package engine

// Address is the parsed path or address of a database, which need not exist. Each engine has its own kind of addresses.
type Address interface {
	// String returns the address for messages, without a password.
	String() string
	// Absolute returns the address in a form that does not depend on the working directory.
	Absolute() (string, error)
	// File returns the path if the database is a file of this host, else "".
	File() string
	// HasPassword reports whether the address includes a password.
	HasPassword() bool
	// Engine prepares the engine of the database. It opens nothing.
	Engine(o Options) (Engine, error)
}

package admin

import "example.com/runner/db"

// These types describe the sessions of a PostgreSQL server.
type (
	ServerHealth = db.ServerHealth
	Session      = db.Session
)

// Identifier returns the name of a role in the form that SQL requires, with quotes if necessary.
func Identifier(name string) string { return db.Identifier(name) }

// Package schema holds the numbered files that make the tables of runner: for SQLite files here, for PostgreSQL servers in the
// folder postgres.
//
// The first of the numbered files makes the schema. Those behind it are migrations, each run once, forward only. The number of the
// last one is the version of the schema. An SQLite file of version 11 is converted by the files in the folder convert.
package schema

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/db/internal/sqltext"
)

//go:embed *.sql convert/*.sql postgres/*.sql
var embedded embed.FS

// Files are the numbered files. A test adds a migration to them.
var Files fs.FS = embedded

// Folders of numbered files.
const (
	SQLite   = "."
	Convert  = "convert"
	Postgres = "postgres"
)

// ConvertedVersion is the one version of SQLite files before the first of the numbered files that can be converted.
const ConvertedVersion = 11

// Migration is a numbered file.
type Migration struct {
	Version int
	Path    string
}

// Text returns the template of the statements of a migration.
func (m Migration) Text() string {
	text, err := fs.ReadFile(Files, m.Path)
	if err != nil {
		panic(err) // it is embedded
	}
	return withTaskOptions(string(text), path.Dir(m.Path) == Postgres)
}

// Migrations returns the numbered files in a folder, in their order.
func Migrations(folder string) []Migration {
	names, err := fs.Glob(Files, path.Join(folder, "*.sql")) // sorted
	list := make([]Migration, len(names))
	for i, name := range names {
		version, invalid := strconv.Atoi(path.Base(name)[:4])
		err = errors.Join(err, invalid)
		list[i] = Migration{version, name}
	}
	if err != nil || len(list) == 0 {
		panic(fmt.Sprint("db: schema: ", err)) // it is embedded
	}
	return list
}

// Version returns the version of the schema that the files of a folder make.
func Version(folder string) int {
	list := Migrations(folder)
	return list[len(list)-1].Version
}

// MigrationsFrom returns what brings an SQLite file of version have up to date, in order. One of ConvertedVersion is converted by a
// file before the first schema file, and one behind it.
func MigrationsFrom(have int) (list []Migration) {
	if have == ConvertedVersion {
		convert, all := Migrations(Convert), Migrations(SQLite)
		return slices.Concat(convert[:1], all[:1], convert[1:], all[1:])
	}
	for _, m := range Migrations(SQLite) {
		if m.Version > have {
			list = append(list, m)
		}
	}
	return list
}

// Names lists the names of tables, indexes, views and triggers that the files for SQLite make, also those that a conversion makes
// and drops.
func Names() []string {
	var list []string
	for _, m := range MigrationsFrom(ConvertedVersion) {
		list = append(list, sqltext.Marks(m.Text())...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// MaxPrefix is the greatest length of a prefix in bytes.
const MaxPrefix = 32

// ValidPrefix reports whether names may begin with prefix: a letter or underscore, then at most 31 letters, digits or underscores.
func ValidPrefix(prefix string) bool {
	ok := len(prefix) <= MaxPrefix && !reserved(prefix)
	for i := range len(prefix) {
		c := prefix[i]
		ok = ok && (c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9')
	}
	return ok
}

// reserved reports whether SQLite keeps names that begin with prefix for itself.
func reserved(prefix string) bool { return strings.HasPrefix(strings.ToLower(prefix), "sqlite_") }

// Package schema contains the numbered files that create the tables of runner. The files for SQLite are in this folder. The files for
// PostgreSQL servers are in the folder postgres.
//
// The first numbered file creates the schema. The later files are migrations. Each file runs once, and there is no downgrade. The number
// of the last file is the version of the schema. The folder convert has the files that upgrade an SQLite file of version 11.
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

// Files is the filesystem with the numbered files. It is a variable, so that a test can add a migration.
var Files fs.FS = embedded

// SQLite, Convert and Postgres are the folders of numbered files.
const (
	SQLite   = "."
	Convert  = "convert"
	Postgres = "postgres"
)

// optionDialects maps each folder to the SQL about task options in its dialect.
var optionDialects = map[string]*optionDialect{SQLite: sqliteOptions, Convert: sqliteOptions, Postgres: postgresOptions}

// ConvertedVersion is the oldest version of a schema that runner can upgrade. The files in the folder convert upgrade it to the version of
// the first numbered file. runner rejects every other version below that of the first numbered file. Only SQLite files can have version 11.
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
		panic(err) // cannot happen, because the file is embedded
	}
	return withTaskOptions(string(text), optionDialects[path.Dir(m.Path)])
}

// Migrations returns the numbered files in a folder, in order.
func Migrations(folder string) []Migration {
	names, err := fs.Glob(Files, path.Join(folder, "*.sql")) // sorted
	list := make([]Migration, len(names))
	for i, name := range names {
		version, invalid := strconv.Atoi(path.Base(name)[:4])
		err = errors.Join(err, invalid)
		list[i] = Migration{version, name}
	}
	if err != nil || len(list) == 0 {
		panic(fmt.Sprint("db: schema: ", err)) // cannot happen, because the files are embedded
	}
	return list
}

// Version returns the version of the schema that the files of a folder create.
func Version(folder string) int {
	list := Migrations(folder)
	return list[len(list)-1].Version
}

// MigrationsFrom returns the migrations that upgrade an SQLite file of the version "have", in order. If "have" is ConvertedVersion, the
// list also has the files of the folder convert: the first of them before the first schema file, and the others after it.
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

// Names lists the names of the tables, indexes, views and triggers that the files for SQLite create. The list includes names that a
// conversion creates and drops again.
func Names() []string {
	var list []string
	for _, m := range MigrationsFrom(ConvertedVersion) {
		list = append(list, sqltext.Marks(m.Text())...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// MaxPrefix is the largest length of a prefix in bytes.
const MaxPrefix = 32

// ValidPrefix reports whether prefix is valid: empty, or a letter or underscore and then at most 31 letters, digits or underscores. A
// prefix that SQLite reserves is not valid.
func ValidPrefix(prefix string) bool {
	ok := len(prefix) <= MaxPrefix && !reserved(prefix)
	for i := range len(prefix) {
		c := prefix[i]
		ok = ok && (c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9')
	}
	return ok
}

// reserved reports whether SQLite reserves the names that begin with prefix for itself.
func reserved(prefix string) bool { return strings.HasPrefix(strings.ToLower(prefix), "sqlite_") }

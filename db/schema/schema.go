// Package schema contains the numbered files that create the tables of runner:
// those for SQLite in this folder, and those for PostgreSQL in the folder
// postgres.
//
// The files 0001 create the schema; later files are migrations. Each file runs
// once, and there is no downgrade. The highest number is the schema's version.
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

//go:embed *.sql postgres/*.sql
var files embed.FS

// Added has further migrations by folder. Only tests set it.
var Added map[string][]Migration

// SQLite and Postgres are the folders of numbered files.
const (
	SQLite   = "."
	Postgres = "postgres"
)

// Migration is a numbered file.
type Migration struct {
	Version int
	Name    string
	SQL     string // of a migration in Added, in place of a file
	folder  string
}

// Text returns the statements of a migration. The names of tables are in
// braces.
func (m Migration) Text() string {
	if m.SQL != "" {
		return m.SQL
	}

	text, err := files.ReadFile(path.Join(m.folder, m.Name))
	if err != nil {
		panic(err) // can't happen, because the file is embedded
	}
	return string(text)
}

// Migrations returns the numbered files in a folder, in order.
func Migrations(folder string) []Migration {
	names, err := fs.Glob(files, path.Join(folder, "*.sql")) // sorted
	list := make([]Migration, len(names))
	for i, name := range names {
		version, invalid := strconv.Atoi(path.Base(name)[:4])
		err = errors.Join(err, invalid)
		list[i] = Migration{Version: version, Name: path.Base(name), folder: folder}
	}

	if err != nil || len(list) == 0 {
		panic(fmt.Sprint("db: schema: ", err)) // can't happen, because the files are embedded
	}

	for _, m := range Added[folder] {
		m.folder = folder
		list = append(list, m)
	}

	return list
}

// Version returns the version of the schema that the files of a folder create.
func Version(folder string) int {
	list := Migrations(folder)
	return list[len(list)-1].Version
}

// MigrationsFrom returns the files of a folder that upgrade a schema of version
// have, or that create it if have is 0.
func MigrationsFrom(folder string, have int) []Migration {
	return slices.DeleteFunc(Migrations(folder), func(m Migration) bool { return m.Version <= have })
}

// Names lists the names of the tables, indexes, views and triggers that the
// files for SQLite create.
func Names() []string {
	var list []string
	for _, m := range Migrations(SQLite) {
		list = append(list, sqltext.Marks(m.Text())...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Columns returns the columns of all tables in the files for SQLite, as
// table.column. In the text of CREATE TABLE each column has a line of its own.
func Columns() map[string]bool {
	all := map[string]bool{}
	for _, m := range Migrations(SQLite) {
		table := ""
		for line := range strings.Lines(m.Text()) {
			if name, ok := strings.CutPrefix(line, "CREATE TABLE {"); ok {
				table, _, _ = strings.Cut(name, "}")
			} else if strings.HasPrefix(line, ")") {
				table = ""
			} else if table != "" && 'a' <= line[2] && line[2] <= 'z' {
				column, _, _ := strings.Cut(line[2:], " ")
				all[table+"."+column] = true
			}
		}
	}

	return all
}

// MaxPrefix is the largest length of a prefix in bytes.
const MaxPrefix = 32

// ValidPrefix reports whether prefix is valid: empty, or a letter or underscore
// and then at most 31 letters, digits or underscores, but not one of SQLite's
// own.
func ValidPrefix(prefix string) bool {
	ok := len(prefix) <= MaxPrefix && !strings.HasPrefix(strings.ToLower(prefix), "sqlite_")
	for i := range len(prefix) {
		c := prefix[i]
		ok = ok && (c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9')
	}
	return ok
}

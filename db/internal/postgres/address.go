package postgres

import (
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/humanize"
)

// URL is the address of a database on a server. It implements engine.Address.
type URL string

var _ engine.Address = URL("")

// IsURL reports whether address names a database on a server.
func IsURL(address string) bool {
	scheme, _, ok := strings.Cut(address, "://")
	return ok && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"))
}

// ParseURL returns the address with its scheme in lower case.
func ParseURL(address string) URL {
	scheme, rest, _ := strings.Cut(address, "://")
	return URL(strings.ToLower(scheme) + "://" + rest)
}

// password matches a password in an address; group 1 or 2 is the text before
// it.
var password = humanize.Lazy(`^([a-z]+://[^/?#@:]*):[^/?#]*@|([?&](?:ssl)?password=)[^&#]*`)

// String returns the address without its password.
func (u URL) String() string {
	return password().ReplaceAllStringFunc(string(u), func(part string) string {
		m := password().FindStringSubmatch(part)
		if m[2] != "" {
			return m[2] + "xxxxx"
		}
		return m[1] + "@"
	})
}

// Absolute returns the address as it is: no part depends on the working
// directory.
func (u URL) Absolute() (string, error) { return string(u), nil }

// LocalFile returns false.
func (URL) LocalFile() bool { return false }

// CheckWriters returns nil: the server checks the rights of its users itself.
func (URL) CheckWriters(int) error { return nil }

// HasPassword reports whether the address includes a password.
func (u URL) HasPassword() bool { return password().MatchString(string(u)) }

// Engine prepares a database on the server. It doesn't connect.
func (u URL) Engine(o engine.Options) (engine.Engine, error) { return New(string(u), o) }

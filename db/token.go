package db

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/runner/jobs"
)

const (
	tokenBytes  = 32 // 256 bits
	tokenLength = 22 // characters, at least: 128 bits in base64
)

// Token reads the token that stands in a file (empty: "token" beside the database), or makes both. The file is its owner's alone from its
// first moment and appears whole; what stands in its place and is no plain file, or may be read by others, is refused.
func (d *DB) Token(path string) (string, error) {
	if path == "" {
		if err := d.MakeDir(); err != nil {
			return "", err
		}
		path = filepath.Join(d.Dir(), "token")
	}
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	made := filepath.Join(filepath.Dir(path), "token."+rand.Text())
	file, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return "", tokenProblem(path, err)
	}
	defer os.Remove(made)
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	_, err = io.WriteString(file, base64.RawURLEncoding.EncodeToString(random[:])+"\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", tokenProblem(path, err)
	}
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) { // another process was quicker: its token it is
		return "", tokenProblem(path, err)
	}
	return readToken(path)
}

func readToken(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil:
		return "", tokenProblem(path, err)
	case !info.Mode().IsRegular(): // a pipe would wait
		return "", &jobs.Problem{Kind: jobs.ErrPermission, What: "the token file " + path + " is no plain file"}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return "", tokenProblem(path, err)
	}
	defer file.Close()
	info, err = file.Stat()
	if err != nil {
		return "", tokenProblem(path, err)
	}
	if _, _, modes := owner(info); modes && info.Mode().Perm()&0o077 != 0 {
		return "", &jobs.Problem{Kind: jobs.ErrPermission, What: "others may read the token file " + path, Try: "rm " + path + ", for a new token"}
	}
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return "", tokenProblem(path, err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < tokenLength || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &jobs.Problem{Kind: jobs.ErrInvalid, What: "the token file " + path + " holds no token",
			Why: []string{fmt.Sprintf("a token is at least %d printable characters", tokenLength)}, Try: "rm " + path + ", for a new token"}
	}
	return token, nil
}

func tokenProblem(path string, err error) error {
	return &jobs.Problem{Kind: jobs.ErrPermission, What: "cannot use the token file " + path, Why: []string{err.Error()}, Err: err}
}

package db

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/runner/db/internal/owner"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// tokenLength is the least number of characters of a token.
const tokenLength = 22

// TokenFile returns the path of the token file, in the directory beside the
// database.
func (d *DB) TokenFile() string { return filepath.Join(d.Dir(), "token") }

// Token reads the token from the file at path, or from TokenFile if path is
// empty. It makes a missing file, with a new token. It rejects a file that
// others may read, write or replace, or that another user has made.
func (d *DB) Token(path string) (string, error) {
	if path == "" {
		if err := d.MakeDir(); err != nil {
			return "", err
		}
		path = d.TokenFile()
	}
	if err := checkTokenDir(path); err != nil {
		return "", err
	}

	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(path); err != nil {
			return "", tokenProblem(path, err)
		}
		token, err = readToken(path)
	}

	return token, err
}

// makeToken makes the file at path with a new token, unless another process has
// just made it. No process sees the file incomplete.
func makeToken(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "token.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())

	_, err = file.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}

	return nil
}

// checkTokenDir returns an error for a directory in which other users can
// replace the file at path. In a sticky directory they can't, but they can make
// the file before this user does; readToken rejects such a file.
func checkTokenDir(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return tokenProblem(path, err)
	}

	mode := info.Mode()
	if mode&fs.ModeSticky != 0 {
		mode &^= 0o022
	}
	if why, try := owner.Exposed(info, mode, os.Geteuid()); why != "" {
		return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.TokenDirectory, Subject: path,
			What: "the directory of the token file " + path + " " + why,
			Why:  []string{"another user could put a token there that they know"}, Hint: try + " " + dir}
	}

	return nil
}

func readToken(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|owner.NoFollow|owner.NoBlock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		if info, unknown := os.Lstat(path); unknown == nil && !info.Mode().IsRegular() {
			err = notOurToken(path) // such as a symbolic link, which NoFollow refuses
		} else {
			err = tokenProblem(path, err)
		}
		return "", err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return "", tokenProblem(path, err)
	}

	uid, _, known := owner.Of(info)
	foreign := known && uid != os.Geteuid() && uid != 0
	if shared := known && info.Mode().Perm()&0o077 != 0; foreign || shared || !info.Mode().IsRegular() {
		return "", notOurToken(path)
	}

	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return "", tokenProblem(path, err)
	}

	token := strings.TrimSpace(string(text))
	if len(token) < tokenLength || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "the token file " + path + " holds no token",
			Why:  []string{fmt.Sprintf("a token is at least %d printable characters", tokenLength)},
			Hint: "rm " + path + ", for a new token"}
	}

	return token, nil
}

func notOurToken(path string) error {
	return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.TokenOwner, Subject: path,
		What: "the token file " + path + " is not a regular file that only this user may read or write",
		Hint: "rm " + path + ", for a new token"}
}

func tokenProblem(path string, err error) error {
	return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot use the token file " + path, Why: []string{err.Error()}, Err: err}
}

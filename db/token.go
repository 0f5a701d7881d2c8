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

	"example.com/runner/db/internal/owner"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

const (
	tokenBytes  = 32 // number of random bytes in a new token (256 bits)
	tokenLength = 22 // minimum number of characters of a token; 22 characters of base64 have 128 bits
)

// TokenFile returns the path of the token file: "token" in the directory beside the database.
func (d *DB) TokenFile() string { return filepath.Join(d.Dir(), "token") }

// Token reads the token from the file at path, or from TokenFile if path is empty. If the file is missing, Token makes it with a new
// token. The file has mode 0600 from the beginning, and other processes never see it incomplete. Token rejects a file that is not regular
// or that other users may read or write. It also rejects a directory in which other users may replace the file.
func (d *DB) Token(path string) (string, error) {
	if path == "" {
		if err := d.MakeDir(); err != nil {
			return "", err
		}
		path = d.TokenFile()
	}
	if err := tokenDir(path); err != nil {
		return "", err
	}
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	made := filepath.Join(filepath.Dir(path), "token."+rand.Text())
	file, err := os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL|owner.NoFollow, 0o600)
	if err != nil {
		return "", tokenProblem(path, err)
	}
	defer os.Remove(made)
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails
	_, err = io.WriteString(file, base64.RawURLEncoding.EncodeToString(random[:])+"\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", tokenProblem(path, err)
	}
	// if another process has created the file in the meantime, use the token in it
	if err := os.Link(made, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", tokenProblem(path, err)
	}
	return readToken(path)
}

// tokenDir returns an error for a directory in which other users can replace the file at path. In a sticky directory they cannot replace
// it. They can still create the file before this user does; readToken rejects such a file.
func tokenDir(path string) error {
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
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil:
		return "", tokenProblem(path, err)
	case !info.Mode().IsRegular(): // check this before the file is opened, because the open of a pipe would block
		return "", &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.TokenLink, Subject: path,
			What: "the token file " + path + " is not a regular file",
			Why:  []string{"a link may lead to a file of another user"}, Hint: "rm " + path + ", for a new token"}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|owner.NoFollow, 0)
	if err != nil {
		return "", tokenProblem(path, err)
	}
	defer file.Close()
	info, err = file.Stat()
	if err != nil {
		return "", tokenProblem(path, err)
	}
	uid, _, modes := owner.Of(info)
	if modes && uid != os.Geteuid() && uid != 0 {
		return "", &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.TokenOwner, Subject: path,
			What: "the token file " + path + " belongs to " + UserName(uid),
			Why:  []string{"that user knows the token"}, Hint: "rm " + path + ", for a new token"}
	}
	if modes && info.Mode().Perm()&0o077 != 0 {
		return "", &jobs.Error{Kind: jobs.ErrPermission, What: "others may read or write the token file " + path,
			Hint: "rm " + path + ", for a new token"}
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

func tokenProblem(path string, err error) error {
	return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot use the token file " + path, Why: []string{err.Error()}, Err: err}
}

package runner

// Token returns the secret that opens this database's pages, from a file (empty: "token" in the directory beside the database). The
// file is made if there is none, with 256 random bits, readable for this user alone. Errors are of kind jobs.ErrPermission or ErrInvalid.
func (r *Runner) Token(file string) (string, error) { return r.store.Token(file) }

// TokenFile returns the path of the file that Token makes beside the database.
func (r *Runner) TokenFile() string { return r.store.TokenFile() }

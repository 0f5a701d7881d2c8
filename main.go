package main

import (
	_ "github.com/dustin/go-humanize"
	_ "github.com/gofrs/flock"
	_ "github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-runewidth"
	_ "github.com/urfave/cli/v2"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "modernc.org/sqlite"
	_ "al.essio.dev/pkg/shellescape"
	_ "github.com/schollz/progressbar/v3"
)

func main() {}

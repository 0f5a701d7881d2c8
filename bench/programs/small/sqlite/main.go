// This program only opens a database. Its size is that of SQLite in a program
// without any library for jobs; see README.md of bench/programs.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	_ "modernc.org/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "small.db")+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()

	var name string
	if err := db.QueryRowContext(ctx, `SELECT 'world'`).Scan(&name); err != nil {
		return err
	}

	fmt.Println("hello", name)
	<-ctx.Done()
	return nil
}

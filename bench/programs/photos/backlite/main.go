// This program is the photo thumbnailer with backlite; see README.md of
// bench/programs.
package main

import (
	"context"
	"database/sql"
	"image"
	"image/png"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite"
)

// Photo is the path of an image.
type Photo struct{ Path string }

// Config sets the options of the queue of this type.
func (Photo) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "photo.shrink", MaxAttempts: 100, Backoff: time.Second, Timeout: 10 * time.Second}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, photos string) error {
	thumbs := filepath.Join(dir, "thumbs")
	if err := os.MkdirAll(thumbs, 0o700); err != nil {
		return err
	}

	db, err := sql.Open("sqlite",
		"file:"+filepath.Join(dir, "photos.db")+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()

	// After a process is killed, its tasks stay claimed until ReleaseAfter has
	// passed. ReleaseAfter must be longer than the longest task.
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 4, ReleaseAfter: 20 * time.Second,
		CleanupInterval: time.Hour})
	if err != nil {
		return err
	}
	if err := client.Install(); err != nil {
		return err
	}

	client.Register(backlite.NewQueue(func(_ context.Context, p Photo) error { return thumbnail(p.Path, thumbs) }))
	client.Start(ctx)
	paths, err := filepath.Glob(filepath.Join(photos, "*.png"))
	if err != nil {
		return err
	}

	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(thumbs, filepath.Base(path))); err == nil {
			continue // the image already has a thumbnail
		}
		if _, err := client.Add(Photo{path}).Ctx(ctx).Save(); err != nil { // an image with an unfinished task gets a second task
			return err
		}
	}

	<-ctx.Done()
	client.Stop(context.WithoutCancel(ctx))
	return nil
}

// thumbnail writes a small copy of an image. It writes a temporary file and
// renames it, so a second call for the same image does no harm.
func thumbnail(from, dir string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()

	source, err := png.Decode(file)
	if err != nil {
		return err
	}

	time.Sleep(200 * time.Millisecond) // stands for the time that a large image would take
	small := image.NewRGBA(image.Rect(0, 0, 32, 32))
	size := source.Bounds().Size()
	for x := range 32 {
		for y := range 32 {
			small.Set(x, y, source.At(x*size.X/32, y*size.Y/32))
		}
	}

	to, err := os.CreateTemp(dir, "*.tmp")
	if err != nil {
		return err
	}
	defer to.Close()

	if err := png.Encode(to, small); err != nil {
		return err
	}

	return os.Rename(to.Name(), filepath.Join(dir, filepath.Base(from)))
}

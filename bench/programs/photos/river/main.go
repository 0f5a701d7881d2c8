// This program is the photo thumbnailer with River; see README.md of
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

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
)

// Photo is the path of an image.
type Photo struct{ Path string }

// Kind names the job.
func (Photo) Kind() string { return "photo.shrink" }

type shrinker struct {
	river.WorkerDefaults[Photo]
	thumbs string
}

func (s *shrinker) Work(_ context.Context, job *river.Job[Photo]) error {
	return thumbnail(job.Args.Path, s.thumbs)
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

	db.SetMaxOpenConns(1) // the documentation of the driver requires one connection
	migrator, err := rivermigrate.New(riversqlite.New(db), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}

	workers := river.NewWorkers()
	river.AddWorker(workers, &shrinker{thumbs: thumbs})
	// After a process is killed, its jobs count as running until
	// RescueStuckJobsAfter has passed. RescueStuckJobsAfter must be longer than
	// the longest job.
	client, err := river.NewClient(riversqlite.New(db), &river.Config{Workers: workers, JobTimeout: 10 * time.Second,
		RescueStuckJobsAfter: 20 * time.Second, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}

	paths, err := filepath.Glob(filepath.Join(photos, "*.png"))
	if err != nil {
		return err
	}

	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(thumbs, filepath.Base(path))); err == nil {
			continue
		}
		if _, err := client.Insert(ctx, Photo{path}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}); err != nil {
			return err
		}
	}

	<-ctx.Done()
	<-client.Stopped()
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

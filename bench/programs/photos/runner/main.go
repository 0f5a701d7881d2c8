// This program is the photo thumbnailer with runner; see README.md of
// bench/programs.
package main

import (
	"context"
	"image"
	"image/png"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Photo is the path of an image.
type Photo struct{ Path string }

var shrink = jobs.Define[Photo]("photo.shrink", jobs.MaxLosses(1000))

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

	r, err := runner.Open(ctx, filepath.Join(dir, "photos.db"), runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	r.Register(shrink.Handler(func(_ context.Context, p Photo) error { return thumbnail(p.Path, thumbs) }))
	paths, err := filepath.Glob(filepath.Join(photos, "*.png"))
	if err != nil {
		return err
	}

	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(thumbs, filepath.Base(path))); err == nil {
			continue
		}
		if _, err := r.Enqueue(ctx, shrink.With(Photo{path}, jobs.Unique(path))); err != nil {
			return err
		}
	}

	return r.Work(ctx, runner.WorkOptions{Concurrency: 4})
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

// This program is the photo thumbnailer with asynq; see README.md of
// bench/programs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// Photo is the path of an image.
type Photo struct{ Path string }

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

	redis := asynq.RedisClientOpt{Network: "unix", Addr: os.Getenv("REDIS_SOCKET")}
	client := asynq.NewClient(redis)
	defer client.Close()

	server := asynq.NewServer(redis, asynq.Config{Concurrency: 4})
	mux := asynq.NewServeMux()
	mux.HandleFunc("photo.shrink", func(_ context.Context, task *asynq.Task) error {
		var p Photo
		if err := json.Unmarshal(task.Payload(), &p); err != nil {
			return err
		}
		return thumbnail(p.Path, thumbs)
	})
	if err := server.Start(mux); err != nil {
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

		text, err := json.Marshal(Photo{path})
		if err != nil {
			return err
		}

		_, err = client.EnqueueContext(ctx, asynq.NewTask("photo.shrink", text, asynq.TaskID(path)))
		if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
			return err
		}
	}

	<-ctx.Done()
	server.Shutdown()
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

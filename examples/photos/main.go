// Photos is the photo library of a desktop program. It imports a folder of
// images, makes a thumbnail of each image and lists its photos. You can kill it
// at any moment. The next start continues the work, and in the end there is one
// thumbnail for each photo.
//
//	photos generate DIR N                  make a folder with N images to import
//	photos -db photos.db import DIR        import new images, and make thumbnails until none is missing
//	photos -db photos.db list              list the photos of the library
//
// The example shows durable steps: the next attempt of a task doesn't repeat
// the finished steps. It also shows what steps don't promise: if the program
// crashes after a step has written its file and before the step is stored as
// finished, the next attempt repeats the step. Therefore the step writes a
// temporary file and renames it, so a repetition does no harm. The transaction
// that completes the task also adds the row of the photo.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // adds JPEG to image.Decode
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Photo is the argument of an import: the path of the photo.
type Photo struct{ Path string }

var importPhoto = jobs.Define[Photo]("photo.import", jobs.MaxAttempts(3), jobs.MaxLosses(1000))

// library uses one file in two ways: as the database of a runner, and as the
// program's own database. It also has a folder for the thumbnails beside that
// file.
type library struct {
	runner *runner.Runner
	db     *sql.DB
	thumbs string
	hash   func(path string) (string, error)
	thumb  func(ctx context.Context, from, to string) (size, error)
}

func open(ctx context.Context, path string, log *slog.Logger) (*library, error) {
	r, err := runner.Open(ctx, path, runner.Options{Log: log})
	if err != nil {
		return nil, err
	}

	db, err := runner.OpenDB(ctx, path)
	if err != nil {
		_ = r.Close()
		return nil, err
	}

	l, err := newLibrary(ctx, r, db)
	if err != nil {
		_ = db.Close()
		_ = r.Close()
	}

	return l, err
}

// newLibrary creates the table and the folder of the program, and registers its
// job. A test passes the runner and the database handle that package runnertest
// has made.
func newLibrary(ctx context.Context, r *runner.Runner, db *sql.DB) (*library, error) {
	l := &library{runner: r, db: db, thumbs: admin.Path(r) + ".thumbs", hash: hashFile}
	l.thumb = func(_ context.Context, from, to string) (size, error) { return makeThumb(from, to) }
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS photos (hash TEXT NOT NULL, path TEXT NOT NULL,
		width INTEGER NOT NULL, height INTEGER NOT NULL) STRICT`)
	r.Register(importPhoto.Handler(l.importOne))
	return l, errors.Join(err, os.MkdirAll(l.thumbs, 0o700))
}

func (l *library) close() {
	_ = l.db.Close()
	_ = l.runner.Close()
}

// enqueueFolder adds a task for each image of a folder, in one transaction. It
// leaves out photos that are in the library or that have a task already. It
// returns the ids of the new tasks.
func (l *library) enqueueFolder(ctx context.Context, dir string) (ids []int64, err error) {
	var specs []jobs.Spec
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(path))) {
			return err
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}

		var there bool
		if err := l.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM photos WHERE path = ?)`, path).Scan(&there); err != nil || there {
			return err
		}

		sum := sha256.Sum256([]byte(path)) // the unique key is a hash, because a path may be longer than a key can be
		specs = append(specs, importPhoto.With(Photo{path}, jobs.Unique(hex.EncodeToString(sum[:])),
			jobs.Label(filepath.Base(path))))
		return nil
	})
	if err != nil {
		return nil, err
	}

	done, err := l.runner.EnqueueSeq(ctx, slices.Values(specs))
	for _, d := range done {
		if !d.Kept {
			ids = append(ids, d.ID)
		}
	}

	return ids, err
}

// importFolder imports the new photos of a folder, and the photos that an
// earlier start of the program has left.
func (l *library) importFolder(ctx context.Context, dir string, w io.Writer) error {
	ids, err := l.enqueueFolder(ctx, dir)
	if err != nil {
		return err
	}

	fmt.Fprintln(w, "importing", len(ids), "photos")
	watching, stop := context.WithCancel(ctx)
	defer stop()
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		l.showCount(watching, ids, w)
	}()
	err = l.runner.Work(ctx, runner.WorkOptions{UntilEmpty: true})

	select {
	case <-counted:
	case <-time.After(time.Second): // a photo that failed is tried again at a later start
	}
	stop()
	<-counted
	return err
}

// showCount counts the tasks that have finished, in one line of a terminal,
// until all have or ctx ends.
func (l *library) showCount(ctx context.Context, ids []int64, w io.Writer) {
	if len(ids) == 0 {
		return // a filter without ids selects all tasks
	}

	finished := map[int64]bool{}
	for task, err := range l.runner.Watch(ctx, jobs.Filter{IDs: ids}) {
		if err != nil {
			break
		}
		if task.State.Finished() {
			finished[task.ID] = true
			fmt.Fprintf(w, "\r%d/%d %s", len(finished), len(ids), task.Label)
		}
		if len(finished) == len(ids) {
			break
		}
	}
	fmt.Fprintln(w)
}

// size is the size of a photo in pixels. The step "thumbnail" returns it.
type size struct{ Width, Height int }

// importOne imports one photo into the library. An attempt that follows a
// failed one calls importOne again from the beginning, but runner.Step returns
// the stored results of the steps that are already finished.
func (l *library) importOne(ctx context.Context, p Photo) error {
	hash, err := runner.Step(ctx, "hash", func(context.Context) (string, error) { return l.hash(p.Path) })
	if err != nil {
		return err
	}

	dim, err := runner.Step(ctx, "thumbnail", func(ctx context.Context) (size, error) {
		return l.thumb(ctx, p.Path, filepath.Join(l.thumbs, hash+".png"))
	})
	if err != nil {
		return err
	}

	// One transaction adds the row of the photo and completes the task, so a
	// crash can't separate these two changes.
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit

	if _, err := tx.ExecContext(ctx, `INSERT INTO photos (hash, path, width, height) VALUES (?, ?, ?, ?)`, hash, p.Path, dim.Width,
		dim.Height); err != nil {
		return err
	}
	if err := runner.FinishTx(ctx, tx, nil); err != nil {
		return err
	}

	return tx.Commit()
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", jobs.Cancel(err) // the file was deleted, so no later attempt can find it
	}
	if err != nil {
		return "", err
	}
	defer file.Close()

	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}

	return hex.EncodeToString(h.Sum(nil)), nil
}

const thumbSize = 64

// makeThumb writes a thumbnail to a temporary file and then renames that file.
// So an incomplete thumbnail never has the final name, and a second call for
// the same photo does no harm.
func makeThumb(from, to string) (size, error) {
	file, err := os.Open(from)
	if err != nil {
		return size{}, err
	}
	defer file.Close()

	whole, _, err := image.Decode(file)
	if err != nil {
		return size{}, jobs.Cancel(fmt.Errorf("%s: %w", from, err)) // the file isn't an image, so a later attempt would fail, too
	}

	b := whole.Bounds()
	small := image.NewRGBA(image.Rect(0, 0, thumbSize, max(thumbSize*b.Dy()/b.Dx(), 1)))
	for y := range small.Bounds().Dy() {
		for x := range thumbSize {
			small.Set(x, y, whole.At(b.Min.X+x*b.Dx()/thumbSize, b.Min.Y+y*b.Dy()/small.Bounds().Dy()))
		}
	}

	part, err := os.CreateTemp(filepath.Dir(to), "part-*")
	if err != nil {
		return size{}, err
	}
	defer func() { _ = os.Remove(part.Name()) }() // after the rename this file no longer exists, and the error does no harm

	if err := errors.Join(png.Encode(part, small), part.Sync(), part.Close()); err != nil {
		return size{}, err
	}

	return size{b.Dx(), b.Dy()}, os.Rename(part.Name(), to)
}

// generate creates n different images.
func generate(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	for i := range n {
		picture := image.NewRGBA(image.Rect(0, 0, 160+rand.IntN(160), 120+rand.IntN(120)))
		hue, at := color.RGBA{uint8(rand.IntN(256)), uint8(rand.IntN(256)), uint8(i), 255}, rand.IntN(100)
		for y := range picture.Bounds().Dy() {
			for x := range picture.Bounds().Dx() {
				picture.Set(x, y, color.RGBA{hue.R + uint8(x), hue.G + uint8(y), hue.B + uint8((x+at)*y/64), 255})
			}
		}

		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("photo-%04d.png", i)))
		if err != nil {
			return err
		}
		if err := errors.Join(png.Encode(file, picture), file.Close()); err != nil {
			return err
		}
	}

	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "photos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("photos", flag.ContinueOnError)
	path := flags.String("db", "photos.db", "database `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if n := 0; flags.Arg(0) == "generate" && flags.NArg() == 3 {
		if _, err := fmt.Sscan(flags.Arg(2), &n); err != nil {
			return err
		}
		return generate(flags.Arg(1), n)
	}

	l, err := open(ctx, *path, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer l.close()

	switch {
	case flags.Arg(0) == "import" && flags.NArg() == 2:
		return l.importFolder(ctx, flags.Arg(1), os.Stdout)
	case flags.Arg(0) == "list" && flags.NArg() == 1:
		return l.list(ctx, os.Stdout)
	}

	return errors.New("usage: photos [-db FILE] import DIR | list; photos generate DIR N")
}

func (l *library) list(ctx context.Context, w io.Writer) error {
	rows, err := l.db.QueryContext(ctx, `SELECT hash, width, height, path FROM photos ORDER BY path`)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		var hash, path string
		var width, height int
		if err := rows.Scan(&hash, &width, &height, &path); err != nil {
			return err
		}
		fmt.Fprintf(w, "%.12s\t%dx%d\t%s\n", hash, width, height, path)
	}

	return rows.Err()
}

package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// separator is the byte that ends each batch of lines in the stream to a page.
const separator = "\x1e"

// cursorMark is the byte before the cursor of a batch. The cursor "end" says that the attempt has ended.
const cursorMark = "\x1f"

// followInterval is the shortest time between two reads of the output of a running attempt.
const followInterval = 100 * time.Millisecond

// log responds with the output of an attempt. A page gets lines of HTML, and other clients get the unchanged bytes. With
// follow=1 in the URL the response continues until the attempt has ended.
func (h *handler) log(w http.ResponseWriter, req *http.Request) {
	if h.o.HideArgs {
		h.writeError(w, req, http.StatusForbidden, "Output is hidden on this server.")
		return
	}
	id, _ := strconv.ParseInt(req.PathValue("id"), 10, 64)
	a, n, err := h.attempt(req.Context(), id, req.FormValue("attempt"))
	if err != nil {
		h.fail(w, req, err)
		return
	}
	follow := req.FormValue("follow") == "1"
	filter := newLogFilter(req.Form)
	from, resumed := parseCursor(req.FormValue("from"))
	var to sink = &rawSink{}
	kind := "text/plain; charset=utf-8"
	if strings.Contains(req.Header.Get("Accept"), fragment) {
		to, kind = &pageSink{lines: newLineSplitter(from), filter: filter, zone: zone(req)}, "text/html; charset=utf-8"
	} else if !follow {
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d-attempt-%d.log"`, id, n))
	}
	s := newStream(w, kind)
	f := &follower{h: h, attempt: a, to: to, stream: s, resumed: resumed, seq: from.lastSent()}
	if !follow {
		err = f.sendAll(req.Context())
	} else {
		err = f.follow(req.Context())
	}
	if err != nil && req.Context().Err() == nil {
		h.logger.Debug("log", "task", id, "err", err) // the client has closed the connection, or the database is closed
	}
}

// attempt returns an attempt of a task by its number, counted from 1. Without a number it returns the last attempt.
func (h *handler) attempt(ctx context.Context, id int64, number string) (a jobs.Attempt, n int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, errSlow)
	defer cancel()
	t, err := h.r.Get(ctx, id)
	if err != nil {
		return a, 0, err
	}
	attempts, err := h.r.Attempts(ctx, t)
	if err != nil {
		return a, 0, err
	}
	n = len(attempts)
	if number != "" {
		n, _ = strconv.Atoi(number)
	}
	if n < 1 || n > len(attempts) {
		return a, 0, &jobs.Error{Kind: jobs.ErrNotFound, What: fmt.Sprintf("task %d has no attempt %s", id, number)}
	}
	return attempts[n-1], n, nil
}

// sink converts chunks of output to the data to send.
type sink interface {
	add(jobs.Chunk) []byte
	flush() []byte // flush ends a batch of chunks
	end() []byte   // end ends the output
}

// rawSink sends the bytes unchanged.
type rawSink struct{ started bool }

func (s *rawSink) add(c jobs.Chunk) []byte {
	if c.DroppedBytes > 0 && s.started {
		return append(fmt.Appendf(nil, "\n--- %s not kept ---\n", humanize.Size(c.DroppedBytes)), c.Data...)
	}
	s.started = true
	return c.Data
}

func (s *rawSink) flush() []byte { return nil }
func (s *rawSink) end() []byte   { return nil }

// pageSink converts the output to lines of HTML. The last line of a stream may still be unfinished at the end of a batch. The batch then
// also has this part of the line. Each batch ends with a cursor, the position after the last complete line of each stream. So a later batch
// sends the unfinished line again.
type pageSink struct {
	lines  *lineSplitter
	filter logFilter
	zone   *time.Location
}

func (s *pageSink) html(list []logLine) []byte {
	return []byte(htmlOf(slices.DeleteFunc(list, func(l logLine) bool { return !s.filter.match(l) }), s.zone))
}

func (s *pageSink) add(c jobs.Chunk) []byte { return s.html(s.lines.add(c)) }

func (s *pageSink) flush() []byte {
	return fmt.Appendf(s.html(s.lines.unfinished()), "%s%s%s", cursorMark, s.lines.from, separator)
}

func (s *pageSink) end() []byte { return []byte(cursorMark + "end" + separator) }

// follower sends the output of an attempt to a client.
type follower struct {
	h       *handler
	attempt jobs.Attempt
	to      sink
	stream  *stream
	resumed bool  // whether the client continues at a cursor, so it needs no earlier lines
	seq     int64 // number of the last chunk that was sent
	sent    bool  // whether anything was sent
}

// sendAll sends the output that is stored now. It reads in batches to avoid a long read transaction.
func (f *follower) sendAll(ctx context.Context) error {
	for idle := f.sent; ; idle = false {
		chunks, err := f.h.r.Output(ctx, f.attempt, f.seq, maxChunks)
		if err != nil || idle && len(chunks) == 0 {
			return err
		}
		var b bytes.Buffer
		for _, c := range chunks {
			f.seq = c.Seq
			b.Write(f.to.add(c))
		}
		isLast := len(chunks) < maxChunks
		if isLast {
			b.Write(f.to.flush())
		}
		f.sent = true
		if b.Len() > 0 {
			err = f.stream.write(b.Bytes())
		}
		if err != nil || isLast {
			return err
		}
	}
}

// follow sends the stored output and then new output until the attempt has ended. A page gets the lines after its cursor. Without a
// cursor it gets only the last lines of the stored output.
func (f *follower) follow(ctx context.Context) error {
	if _, page := f.to.(*pageSink); page && !f.resumed {
		chunks, _, err := f.h.readTail(ctx, f.attempt, maxLines, maxLogSize)
		if err != nil {
			return err
		}
		if len(chunks) > 0 {
			f.seq = chunks[0].Seq - 1
		}
	}
	err := f.h.r.Changes(ctx, func() (bool, error) {
		t, err := f.h.r.Get(ctx, f.attempt.TaskID)
		if errors.Is(err, jobs.ErrNotFound) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		over := t.State != jobs.Running || t.GenerationID != f.attempt.GenerationID
		before := f.seq
		if err := f.sendAll(ctx); err != nil {
			return false, err
		}
		if !over && f.seq > before {
			// The pause lets the output of a busy task collect, so that one read returns more of it.
			select {
			case <-time.After(followInterval):
			case <-ctx.Done():
			}
		}
		return over, nil
	})
	if err == nil {
		err = f.stream.write(f.to.end())
	}
	return err
}

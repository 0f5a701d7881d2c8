package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// separator is the byte that ends each batch of lines in the stream to a page.
const separator = "\x1e"

// cursorMark is the byte before the cursor of a batch. The last cursor is end.
const cursorMark = "\x1f"

// followInterval is the shortest time between two reads of the output of a
// running attempt.
const followInterval = 100 * time.Millisecond

// log responds with the output of an attempt: with its unchanged bytes, or with
// follow=1 in the URL with lines of HTML, until the attempt has ended.
func (h *handler) log(w http.ResponseWriter, req *http.Request) {
	if h.o.HideArgs {
		h.writeError(w, req, http.StatusForbidden, "Output is hidden on this server.")
		return
	}

	a, n, err := h.attempt(req)
	if err != nil {
		h.fail(w, req, err)
		return
	}
	if req.FormValue("follow") == "1" {
		from, resumed := parseCursor(req.FormValue("from"))
		f := &follower{
			h:       h,
			attempt: a,
			stream:  newStream(w, "text/html; charset=utf-8"),
			lines:   newLineSplitter(from),
			zone:    zone(req),
			resumed: resumed,
			seq:     from.lastSent(),
		}
		err = f.follow(req.Context())
	} else {
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d-attempt-%d.log"`, a.TaskID, n))
		err = h.download(req.Context(), newStream(w, "text/plain; charset=utf-8"), a)
	}
	if err != nil && req.Context().Err() == nil {
		h.logger.Debug("log", "task", a.TaskID, "err", err) // the client is gone, or the database is closed
	}
}

// download sends the stored output of an attempt. It reads in batches to avoid
// a long read transaction.
func (h *handler) download(ctx context.Context, s *stream, a admin.Attempt) error {
	for seq := int64(0); ; {
		chunks, err := admin.Output(ctx, h.r, a, seq, maxChunks)
		if err != nil {
			return err
		}

		var b bytes.Buffer
		for _, c := range chunks {
			if c.DroppedBytes > 0 && seq > 0 {
				fmt.Fprintf(&b, "\n--- %s not kept ---\n", humanize.Size(c.DroppedBytes))
			}
			seq = c.Seq
			b.Write(c.Data)
		}

		if err := s.write(b.Bytes()); err != nil || len(chunks) < maxChunks {
			return err
		}
	}
}

// attempt returns the attempt that a request names by its number, counted from
// 1, or the last attempt.
func (h *handler) attempt(req *http.Request) (a admin.Attempt, n int, err error) {
	ctx, cancel := readContext(req)
	defer cancel()

	t, err := h.getTask(ctx, req)
	if err != nil {
		return a, 0, err
	}

	attempts, err := admin.Attempts(ctx, h.r, t)
	if err != nil {
		return a, 0, err
	}

	n = len(attempts)
	number := req.FormValue("attempt")
	if number != "" {
		n, _ = strconv.Atoi(number)
	}
	if n < 1 || n > len(attempts) {
		return a, 0, &jobs.Error{Kind: jobs.ErrNotFound, What: fmt.Sprintf("task %d has no attempt %s", t.ID, number)}
	}

	return attempts[n-1], n, nil
}

// follower sends the output of an attempt to a page. The last line of a stream
// may still be unfinished at the end of a batch. The batch then also has this
// part of the line, and ends with a cursor, the position after the last
// complete line of each stream. So a later batch sends the unfinished line
// again.
type follower struct {
	h       *handler
	attempt admin.Attempt
	stream  *stream
	lines   *lineSplitter
	zone    *time.Location
	resumed bool  // whether the client continues at a cursor, so it needs no earlier lines
	seq     int64 // number of the last chunk that was sent
	sent    bool  // whether anything was sent
}

// sendAll sends the output that is stored now, in batches like download.
func (f *follower) sendAll(ctx context.Context) error {
	for idle := f.sent; ; idle = false {
		chunks, err := admin.Output(ctx, f.h.r, f.attempt, f.seq, maxChunks)
		if err != nil || idle && len(chunks) == 0 {
			return err
		}

		var list []logLine
		for _, c := range chunks {
			f.seq = c.Seq
			list = append(list, f.lines.add(c)...)
		}

		list = append(list, f.lines.unfinished()...)
		f.sent = true
		err = f.stream.write(fmt.Append(nil, htmlOf(list, f.zone), cursorMark, f.lines.from, separator))
		if err != nil || len(chunks) < maxChunks {
			return err
		}
	}
}

// follow sends the stored output and then new output until the attempt has
// ended. A page gets the lines after its cursor. Without a cursor it gets only
// the last lines of the stored output.
func (f *follower) follow(ctx context.Context) error {
	if !f.resumed {
		chunks, _, err := f.h.readTail(ctx, f.attempt)
		if err != nil {
			return err
		}
		if len(chunks) > 0 {
			f.seq = chunks[0].Seq - 1
		}
	}

	err := admin.Changes(ctx, f.h.r, func() (bool, error) {
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
			// The pause lets the output of a busy task collect, so that one
			// read returns more of it.
			select {
			case <-time.After(followInterval):
			case <-ctx.Done():
			}
		}

		return over, nil
	})
	if err == nil {
		err = f.stream.write([]byte(cursorMark + "end" + separator))
	}

	return err
}

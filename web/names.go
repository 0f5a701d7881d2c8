package web

import (
	"context"
	"sync"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/search"
)

// nameCache keeps the names that the search field offers.
type nameCache struct {
	mu    sync.Mutex
	names search.Names
	at    time.Time
}

const namesFreshFor = 5 * time.Second

// names returns the names that a search can have.
func (h *handler) names(ctx context.Context) (search.Names, error) {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	if time.Since(h.known.at) < namesFreshFor {
		return h.known.names, nil
	}
	queues, _, err := h.counts.read(ctx, h.r)
	if err != nil {
		return nil, err
	}
	names, err := present.ReadNames(ctx, h.r, queues)
	if err == nil {
		h.known.names, h.known.at = names, time.Now()
	}
	return names, err
}

// correct returns the search that the user probably meant, or an empty text.
func (h *handler) correct(ctx context.Context, query string) (string, error) {
	names, err := h.names(ctx)
	if err != nil {
		return "", err
	}
	return humanize.Safe(search.Correct(query, names)), nil
}

// searchTerm is a part of the present search, and the URL of the search without it.
type searchTerm struct{ Text, Without string }

// searchTerms returns the parts of a search.
func (p page) searchTerms(terms []search.Term) (list []searchTerm) {
	for i, t := range terms {
		rest := append(append([]search.Term(nil), terms[:i]...), terms[i+1:]...)
		link := p.Base + "/tasks"
		if len(rest) > 0 {
			link = p.search(rest...)
		}
		list = append(list, searchTerm{t.String(), link})
	}
	return list
}

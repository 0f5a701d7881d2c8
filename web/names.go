package web

import (
	"context"
	"net/http"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/search"
)

// names returns the names that a search can use, such as the names of the queues. The result maps a key of the search to its names.
func (h *handler) names(ctx context.Context) (search.Names, error) {
	return h.known.get("", func() (search.Names, time.Duration, error) {
		queues, err := h.queues(ctx)
		if err != nil {
			return nil, 0, err
		}
		names, err := present.ReadNames(ctx, h.r, queues)
		return names, 5 * time.Second, err
	})
}

// wordsView is the data of the list of terms that a search field offers.
type wordsView struct{ Words []string }

// words responds with the terms that a search field offers. A page loads them when its field gets the focus.
func (h *handler) words(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()
	words, err := h.termsOffered(ctx)
	if err != nil {
		h.fail(w, req, err)
		return
	}
	if text, ok := h.execute(w, "words", wordsView{words}); ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text) // an error means that the client is gone
	}
}

// termsOffered returns the terms that a search field offers.
func (h *handler) termsOffered(ctx context.Context) ([]string, error) {
	names, err := h.names(ctx)
	if err != nil {
		return nil, err
	}
	words := names.Words()
	for i, word := range words {
		words[i] = humanize.Safe(word)
	}
	return words, nil
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

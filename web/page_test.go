package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/runner"
)

// deafClient doesn't read its response until it is told to.
type deafClient struct {
	*httptest.ResponseRecorder
	sending, read chan struct{}
}

func (c *deafClient) Write(text []byte) (int, error) {
	close(c.sending)
	<-c.read
	return c.ResponseRecorder.Write(text)
}

func TestClientThatDoesNotReadBlocksNoOther(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	h := Handler(r, Options{Authorize: func(*http.Request) error { return nil }})
	get := httptest.NewRequest(http.MethodGet, "/tasks", nil)

	deaf := &deafClient{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(deaf, get.Clone(t.Context()))
	}()
	<-deaf.sending

	other := httptest.NewRecorder()
	h.ServeHTTP(other, get)
	testkit.Equal(t, "status for the other client", other.Code, http.StatusOK)
	close(deaf.read)
	<-done
}

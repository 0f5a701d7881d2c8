package postgres

import (
	"errors"
	"fmt"
	"testing"
)

type serverAnswer string

func (a serverAnswer) Error() string  { return string(a) }
func (serverAnswer) SQLState() string { return "28000" }

func TestAnswerOfServerCountsMoreThanFailedTLSHandshake(t *testing.T) {
	const answer = serverAnswer(`FATAL: role "ann" does not exist (SQLSTATE 28000)`)
	tls := errors.New("10.0.0.1:5432 (db): tls error: server refused TLS connection")
	dial := errors.New("[::1]:5432 (db): dial error: connection refused")
	plain := fmt.Errorf("10.0.0.1:5432 (db): server error: %w", answer)
	connect := func(tries ...error) error {
		return fmt.Errorf("failed to connect to `user=ann database=x`:\n\t%w", errors.Join(tries...))
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"TLS, then an answer":    {connect(tls, plain), plain.Error()},
		"nobody, then an answer": {connect(dial, tls, plain), plain.Error()},
		"an answer, then TLS":    {connect(plain, tls), plain.Error()},
		"TLS, then nobody":       {connect(tls, dial), dial.Error()},
		"only TLS":               {connect(tls), tls.Error()},
		"a statement":            {answer, string(answer)},
	} {
		if got := firstLine(c.err); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

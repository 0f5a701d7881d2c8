// Package usercode calls code of the embedding program: guarded where its panic
// would end the whole worker, or its runtime.Goexit a goroutine that other
// tasks need, and once for all tasks of a batch. It also encodes what the code
// gets and returns as JSON.
package usercode

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// Panic is the error of code that panicked or called runtime.Goexit.
type Panic struct {
	Msg   string // what happened, in one sentence; with the value of the panic
	Stack string // stack of the goroutine, from the function that panicked; empty after runtime.Goexit
}

// Error implements error.
func (p *Panic) Error() string {
	if p.Stack == "" {
		return p.Msg
	}
	return p.Msg + "\n\n" + p.Stack
}

// Goexit is the Panic of code that ended its goroutine.
func Goexit() *Panic { return &Panic{Msg: "the function ended its goroutine"} }

// Call calls f and returns nil, or the panic of f. It runs f on a goroutine of
// its own (about a microsecond), since no deferred call can stop
// runtime.Goexit.
func Call(f func()) *Panic {
	done := make(chan *Panic, 1)
	go func() {
		p := Goexit()
		defer func() {
			if v := recover(); v != nil {
				p = Recovered(v)
			}
			done <- p
		}()

		f()
		p = nil
	}()
	return <-done
}

// Recovered returns the panic with the value v of recover. Call it in the
// deferred function, where the stack still shows the panic.
func Recovered(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p // the panic of a bulk function, which ends several attempts
	}
	p := &Panic{Msg: fmt.Sprintf("panic: a %T", v), Stack: fromPanic(string(debug.Stack()))}
	var text string
	if Call(func() { text = fmt.Sprint("panic: ", v) }) == nil { // v may have a method String or Error
		p.Msg = text
	}
	return p
}

// fromPanic cuts the frames of recover and of the panic itself off a stack.
func fromPanic(stack string) string {
	if _, rest, found := strings.Cut(stack, "\npanic("); found {
		_, rest, _ = strings.Cut(rest, "\n")  // its line
		_, stack, _ = strings.Cut(rest, "\n") // and that of its source
	}
	return stack
}

// Error calls f, which reads an error that who has returned. If a method of err
// panics, the Panic names err's type. The usual reason is a nil pointer:
// func() error { return validate() } returns one if validate returns a nil
// *ValidationError.
func Error(who string, err error, f func()) *Panic {
	p := Call(f)
	if p == nil {
		return nil
	}
	p.Msg = fmt.Sprintf("%s returned an error of type %T and its methods do not return: %s", who, err, p.Msg)
	return p
}

// Flat returns an error with the text of err and nothing else, so that nobody
// calls another method of err. A Panic stays as it is.
func Flat(who string, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := err.(*Panic); ok { //nolint:errorlint // an error that wraps a Panic may have methods of its own
		return p
	}

	var text string
	if p := Error(who, err, func() { text = err.Error() }); p != nil {
		return p
	}
	return errors.New(text)
}

// Is does what errors.Is does, and returns false if a method of err panics.
func Is(err, target error) (is bool) {
	_ = Call(func() { is = errors.Is(err, target) })
	return is
}

// LogArgs returns the attributes of a log record for an error of Flat. A panic
// has its stack.
func LogArgs(err error) []any {
	if p, ok := err.(*Panic); ok { //nolint:errorlint // see Flat
		return []any{"err", p.Msg, "stack", p.Stack}
	}
	return []any{"err", err}
}

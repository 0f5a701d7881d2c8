package usercode

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprint("status ", e.status) }

type goexitText struct{}

func (goexitText) Error() string { runtime.Goexit(); return "" }

func thisFunctionPanics() { panic("boom") }

func TestCallReturnsWhatEndedFunction(t *testing.T) {
	for name, test := range map[string]struct {
		f    func()
		want string
	}{
		"a panic":                  {thisFunctionPanics, "panic: boom"},
		"panic(nil)":               {func() { panic(nil) }, "panic: panic called with nil argument"}, //nolint:govet // on purpose
		"runtime.Goexit":           {func() { runtime.Goexit() }, "the function ended its goroutine"},
		"a value that ends itself": {func() { panic(goexitText{}) }, "panic: a usercode.goexitText"},
		"a nil pointer as value":   {func() { panic((*statusError)(nil)) }, "panic: <nil>"},
	} {
		if p := Call(test.f); p == nil || !strings.HasPrefix(p.Msg, test.want) {
			t.Errorf("%s: got %v, want %s", name, p, test.want)
		}
	}
	if p := Call(func() {}); p != nil {
		t.Errorf("a function that returns: got %v, want nil", p)
	}
	if p := Call(thisFunctionPanics); !strings.HasPrefix(p.Stack, "example.com/runner/internal/usercode.thisFunctionPanics") {
		t.Errorf("got the stack %s, want one that begins with the function that panicked", p.Stack)
	}
}

func TestFlatSaysWhichErrorPanics(t *testing.T) {
	var null *statusError
	const silent = " and its methods do not return: "
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a nil pointer":   {null, "f returned an error of type *usercode.statusError" + silent + "panic: runtime error: "},
		"a text":          {errors.New("x"), "x"},
		"a Goexit":        {goexitText{}, "f returned an error of type usercode.goexitText" + silent + "the function ended"},
		"a panic as such": {&Panic{Msg: "boom"}, "boom"},
	} {
		if err := Flat("f", test.err); !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	if err := Flat("f", nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func BenchmarkCall(b *testing.B) {
	for b.Loop() {
		Call(func() {})
	}
}

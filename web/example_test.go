package web_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"example.com/runner/runner"
	"example.com/runner/web"
)

// temp opens a database in a temporary directory. remove closes the database
// and deletes the directory.
func temp() (r *runner.Runner, dir string, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	if r, err = runner.Open(context.Background(), filepath.Join(dir, "app.db"), runner.Options{}); err != nil {
		log.Fatal(err)
	}
	return r, dir, func() {
		r.Close()
		os.RemoveAll(dir)
	}
}

// A program serves the pages beside its own pages, and decides which users may
// see them.
func ExampleHandler() {
	r, _, remove := temp()
	defer remove()
	mux := http.NewServeMux()
	mux.Handle("/admin/tasks-of-app/", web.Handler(r, web.Options{
		BasePath: "/admin/tasks-of-app",
		Authorize: func(req *http.Request) error {
			if _, password, _ := req.BasicAuth(); password != "correct horse" {
				return errors.New("not an administrator")
			}
			return nil
		},
	}))
	for _, password := range []string{"wrong", "correct horse"} {
		req := httptest.NewRequest(http.MethodGet, "/admin/tasks-of-app/", nil)
		req.SetBasicAuth("ann", password)
		response := httptest.NewRecorder()
		mux.ServeHTTP(response, req)
		fmt.Println(response.Code)
	}
	// Output:
	// 403
	// 200
}

// Listen serves the pages on its own address. A request needs the token from
// the token file, or a sign-in with this token.
func ExampleListen() {
	r, dir, remove := temp()
	defer remove()
	server, err := web.Listen(r, web.ServerOptions{Listen: "127.0.0.1:0", TokenFile: filepath.Join(dir, "token")})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx) }()
	response, err := http.Get(server.URL())
	if err != nil {
		log.Fatal(err)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(response.StatusCode)
	stop()
	fmt.Println(<-done)
	// Output:
	// 401
	// <nil>
}

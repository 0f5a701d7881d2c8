// Package web serves pages with the queues, tasks and schedules of a runner to
// a browser, and metrics to Prometheus. The server renders the pages, so they
// work without JavaScript. With JavaScript they refresh themselves. The pages
// load nothing from another host. No request to this package can enqueue a
// command.
//
// A program that embeds runner mounts Handler behind its own authentication.
// Authorize decides who may see the pages:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"log"
//		"net/http"
//
//		"example.com/runner/runner"
//		"example.com/runner/web"
//	)
//
//	func authorize(req *http.Request) error {
//		if _, password, _ := req.BasicAuth(); password != "correct horse" {
//			return errors.New("not an administrator")
//		}
//		return nil
//	}
//
//	func main() {
//		r, err := runner.Open(context.Background(), "app.db", runner.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer r.Close()
//		http.Handle("/admin/tasks/", web.Handler(r, web.Options{BasePath: "/admin/tasks", Authorize: authorize}))
//		log.Print(http.ListenAndServe("127.0.0.1:8080", nil))
//	}
//
// The program can wrap Handler in another handler, which asks the browser for a
// password: if the password is missing, it sets WWW-Authenticate and responds
// with 401. This outer handler should pass on requests for /healthz and /readyz
// without a password, because health checks send none.
//
// Listen serves the same pages on an address of its own, and requires a token.
// The command "runner serve" uses it.
//
// A test of the mounted pages needs no browser. It makes a Runner with package
// runnertest and records the response:
//
//	pages := web.Handler(runnertest.New(t), web.Options{BasePath: "/admin/tasks", Authorize: authorize})
//	response := httptest.NewRecorder()
//	pages.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/admin/tasks/", nil))
//	if response.Code != http.StatusForbidden {
//		t.Errorf("got status %d without a password, want 403", response.Code)
//	}
package web

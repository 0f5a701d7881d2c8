package runner_test

import (
	"context"
	"fmt"
	"log"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// A program that often searches for the tasks of a tenant creates an index of the key "tenant" when it starts.
func ExampleRunner_IndexMetadata() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	if err := r.IndexMetadata(ctx, "tenant"); err != nil {
		log.Fatal(err)
	}
	for _, tenant := range []string{"acme", "other", "acme"} {
		enqueue(r, SendEmail.With(Email{To: "ann@example.com"}, jobs.Metadata(map[string]string{"tenant": tenant})))
	}
	ids, err := r.IDs(ctx, jobs.Filter{Metadata: map[string]string{"tenant": "acme"}}, runner.Page{})
	fmt.Println(ids, err)
	// Output:
	// [3 1] <nil>
}

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type layer struct {
	path         string
	ours, others []string // packages that the package may import: those of this module, and those of other modules with their subpackages
	not          []string // packages that the package must not import, and words that its source must not contain
}

// layers lists all packages of the module, from the lowest layer to the
// highest. A package may import only packages in earlier rows of this list. Add
// a row for each new package.
var layers = []layer{
	{path: "internal/usercode", not: []string{"os"}},
	{path: "jobs/command", not: []string{"os", "os/exec", "io/fs", "database/sql", "log/slog", "time.Now("}},
	// jobs defines types; it must not use a clock or I/O.
	{path: "jobs", ours: []string{"jobs/command", "internal/usercode"},
		not: []string{"os", "os/exec", "io/fs", "database/sql", "log/slog", "time.Now("}},
	{path: "internal/humanize", ours: []string{"jobs"}, others: []string{"github.com/dustin/go-humanize", "github.com/xrash/smetrics"}},
	// taskspec has only rules. It must not use a clock or I/O.
	{path: "internal/taskspec", ours: []string{"jobs/command", "internal/usercode", "internal/humanize", "jobs"},
		others: []string{"al.essio.dev/pkg/shellescape"},
		not:    []string{"os", "os/exec", "io/fs", "database/sql", "log/slog", "time.Now("}},
	{path: "internal/search", ours: []string{"internal/humanize", "jobs", "internal/taskspec"}},
	{path: "test/testkit/transitions", ours: []string{"jobs"}}, // only tests import this package
	{path: "test/testkit/sample", ours: []string{"internal/taskspec",
		"jobs"}}, // only tests import this package
	{path: "internal/errcode"},
	{path: "internal/supervisor", others: []string{"golang.org/x/sys"}},
	{path: "db/internal/sqltext", not: []string{"os", "database/sql"}},
	{path: "db/schema", ours: []string{"db/internal/sqltext", "internal/taskspec", "jobs"}},
	{path: "db/internal/owner"},
	// This is the interface between db and the drivers. It must not import a
	// driver.
	{path: "db/internal/engine", ours: []string{"db/internal/sqltext", "internal/errcode",
		"jobs"}, others: []string{"github.com/jmoiron/sqlx"}},
	{path: "db/internal/sqlite", ours: []string{"db/internal/engine", "db/internal/owner",
		"db/internal/sqltext", "db/schema", "jobs", "internal/errcode", "internal/humanize"},
		others: []string{"modernc.org/sqlite", "github.com/jmoiron/sqlx", "github.com/gofrs/flock", "golang.org/x/sys"},
		not:    []string{"log/slog", "os/exec", "os/signal", "os.Exit("}},
	{path: "db/internal/postgres", ours: []string{"db/internal/engine", "db/internal/sqltext",
		"db/schema", "jobs", "internal/errcode", "internal/humanize"},
		others: []string{"github.com/jmoiron/sqlx"}, // this package must not import pgx, which db/pgdriver imports
		not:    []string{"log/slog", "os/exec", "os/signal", "os.Exit("}},
	// db must return errors instead of logging them.
	{path: "db", ours: []string{"jobs/command", "db/internal/engine", "db/internal/sqlite", "db/internal/postgres",
		"db/internal/sqltext", "db/internal/owner", "internal/usercode", "internal/taskspec", "internal/humanize",
		"db/schema", "jobs", "internal/errcode"},
		others: []string{"github.com/jmoiron/sqlx", "github.com/google/uuid"},
		not:    []string{"log/slog", "os/exec", "os/signal", "os.Exit("}},
	{path: "db/transfer", ours: []string{"db", "db/internal/engine", "db/internal/sqltext",
		"internal/errcode", "jobs"}},
	{path: "db/pgdriver", ours: []string{"db/internal/engine", "db/internal/postgres", "jobs"},
		others: []string{"github.com/jackc/pgx/v5"}},
	{path: "db/internal/statementtest", ours: []string{"db/internal/sqltext"},
		others: []string{"github.com/jmoiron/sqlx"}}, // only tests import this package
	{path: "test/pgserver"}, // only tests import this package
	{path: "test/testkit"},  // only tests import this package
	{path: "db/dbtest", ours: []string{"jobs/command", "db", "internal/usercode", "internal/taskspec", "jobs",
		"test/testkit/sample", "test/testkit/transitions", "db/pgdriver", "test/testkit"}},
	{path: "db/dbtest/fault", others: []string{"modernc.org/sqlite", "modernc.org/libc"}}, // only tests import this package
	{path: "runner/internal/cron", ours: []string{"internal/taskspec", "internal/humanize", "jobs"},
		not: []string{"os", "time.Now("}},
	{path: "runner/internal/cron/crontest"}, // only tests import this package
	{path: "runner/internal/exec", ours: []string{"jobs/command", "internal/usercode", "internal/taskspec",
		"internal/humanize", "db", "jobs", "internal/supervisor"}},
	{path: "runner/internal/engine", ours: []string{"jobs/command", "internal/usercode",
		"internal/taskspec", "runner/internal/cron", "runner/internal/exec",
		"db", "jobs", "internal/supervisor",
		"internal/humanize"}, not: []string{"os/signal", "flag", "os.Exit(", "fmt.Print"}},
	{path: "runner", ours: []string{"jobs/command", "internal/usercode", "internal/taskspec", "db",
		"internal/errcode", "jobs", "runner/internal/cron",
		"runner/internal/engine"},
		not: []string{"os/signal", "flag", "os.Exit(", "fmt.Print"}}, // only the command line may use these packages and functions
	{path: "runner/commands", ours: []string{"jobs/command", "internal/taskspec", "internal/usercode", "jobs", "db", "runner",
		"runner/internal/engine",
		"runner/internal/exec"}},
	{path: "runner/admin", ours: []string{"db", "internal/errcode", "internal/taskspec", "jobs", "runner",
		"runner/internal/cron", "runner/internal/engine"}},
	{path: "test/testkit/runnerkit", ours: []string{"runner", "runner/admin", "db", "test/testkit",
		"jobs"}}, // only tests import this package
	{path: "test/testkit/pgkit", ours: []string{"test/pgserver", "test/testkit",
		"db/schema"}, // only tests import this package
		others: []string{"github.com/jackc/pgx/v5"}},
	{path: "runner/postgres", ours: []string{"runner", "db/pgdriver",
		"jobs"},
		others: []string{"github.com/jackc/pgx/v5"}}, // this package uses only the type Tx of pgx
	{path: "runner/runnertest", ours: []string{"runner", "runner/internal/engine", "db",
		"internal/taskspec", "jobs"},
		others: []string{"modernc.org/sqlite"},
		not:    []string{"os/exec", "os.Exit("}},
	{path: "internal/orphans", ours: []string{"runner", "runner/admin", "db", "jobs", "internal/supervisor"}},
	// The packages of the program call runner. What only the program needs,
	// they take from the store (db.Of).
	{path: "internal/ui", ours: []string{"jobs/command", "db", "internal/errcode", "internal/humanize", "internal/orphans",
		"internal/search", "internal/taskspec", "jobs", "runner", "runner/admin"},
		others: []string{"al.essio.dev/pkg/shellescape", "golang.org/x/term", "github.com/mattn/go-runewidth"}},
	{path: "internal/ui/termtest", ours: []string{"internal/ui"}}, // only tests import this package
	{path: "web", ours: []string{"jobs/command", "db", "internal/errcode", "internal/humanize",
		"internal/search", "internal/taskspec", "internal/ui", "jobs", "runner", "runner/admin"},
		others: []string{"al.essio.dev/pkg/shellescape"},
		not:    []string{"os/exec", "os/signal", "database/sql", "os.Exit("}},
	{path: "internal/output", ours: []string{"db", "internal/humanize",
		"internal/taskspec", "internal/ui", "jobs", "runner", "runner/admin"}},
	{path: "internal/ops", ours: []string{"db", "internal/humanize", "internal/orphans",
		"internal/taskspec", "internal/ui", "jobs", "runner", "runner/admin"},
		others: []string{"github.com/coreos/go-systemd/v22", "golang.org/x/sys"}},
	{path: "internal/cli", ours: []string{"jobs/command", "db", "internal/errcode",
		"internal/humanize", "internal/ops", "internal/search", "internal/taskspec", "internal/ui",
		"jobs", "runner", "runner/admin", "runner/postgres", "web"},
		others: []string{"al.essio.dev/pkg/shellescape", "github.com/urfave/cli/v2"}},
	{path: "internal/input", ours: []string{"jobs/command", "internal/humanize", "internal/ops",
		"internal/output", "internal/taskspec", "internal/ui", "jobs", "runner", "runner/admin"}},
	{path: "",
		ours: []string{"web", "runner", "runner/admin", "runner/commands", "runner/postgres", "jobs", "db", "db/transfer",
			"internal/output", "internal/input", "internal/cli", "internal/ops", "internal/ui",
			"internal/humanize", "internal/search", "internal/taskspec"},
		others: []string{"al.essio.dev/pkg/shellescape",
			"github.com/coreos/go-systemd/v22"},
		not: []string{"database/sql"}},
	// The harness must not use the code that it checks.
	{path: "test/selftest/harness", ours: []string{"jobs/command", "jobs", "test/testkit/transitions", "test/pgserver"},
		others: []string{"modernc.org/sqlite", "github.com/jackc/pgx/v5"}},
	{path: "test/selftest", ours: []string{"internal/ui", "jobs", "runner", "runner/commands", "runner/postgres",
		"test/selftest/harness", "web"}},
	{path: "test/mutants"},   // contains only tests
	{path: "test/codeblock"}, // only tests import this package
	{path: "test/picture"},
	{path: "test/sample"}, // prints random sentences and comments for a review
	{path: "test"},        // contains only tests
}

const module = "example.com/runner"

type listed struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

// TestPackagesImportOnlyLowerLayers compares the imports of all packages with
// the list in layers.
func TestPackagesImportOnlyLowerLayers(t *testing.T) {
	packages := map[string]listed{}
	decoder := json.NewDecoder(strings.NewReader(goOutput(t, "list", "-json=ImportPath,Dir,Imports,GoFiles", "./...")))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages[local(p.ImportPath)] = p
	}
	for i, l := range layers {
		p, ok := packages[l.path]
		if !ok {
			t.Errorf("got a row for %q in layers, want rows only for existing packages", l.path)
		}
		delete(packages, l.path)
		for _, path := range l.ours {
			if !slices.ContainsFunc(layers[:i], func(below layer) bool { return below.path == path }) {
				t.Errorf("layers: %s may import %s, want only packages above its row", p.ImportPath, path)
			}
		}
		l.check(t, p)
	}
	for path := range packages {
		t.Errorf("package %s: got no row in layers (test/layers_test.go), want one, and a row in docs/design.md", path)
	}
}

func (l layer) check(t *testing.T, p listed) {
	for _, path := range p.Imports {
		first, _, _ := strings.Cut(path, "/")
		switch ours := path == module || strings.HasPrefix(path, module+"/"); {
		case slices.Contains(l.not, path):
			t.Errorf("%s: got an import of %s, want none", p.ImportPath, path)
		case ours && !slices.Contains(l.ours, local(path)):
			t.Errorf("%s: got an import of %s, want only packages that its row allows", p.ImportPath, path)
		case !ours && strings.Contains(first, ".") && !slices.ContainsFunc(l.others, func(o string) bool {
			return path == o || strings.HasPrefix(path, o+"/")
		}):
			t.Errorf("%s: got an import of %s, want it in its row of layers and in docs/dependencies.md, or in another package",
				p.ImportPath, path)
		}
	}
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, word := range l.not {
			if bytes.Contains(text, []byte(word)) && strings.ContainsAny(word, ".(") {
				t.Errorf("%s: got %s in %s, want none", p.ImportPath, word, name)
			}
		}
	}
}

// TestDependenciesAreDocumented checks that docs/dependencies.md names the
// modules that the product needs, which are in go.mod.
func TestDependenciesAreDocumented(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goOutput(t, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var required, documented []string
	for _, r := range mod.Require {
		if !r.Indirect {
			required = append(required, r.Path)
		}
	}
	for line := range strings.Lines(string(text)) {
		if _, row, ok := strings.Cut(line, "| `"); ok && strings.HasPrefix(line, "| `") {
			path, _, _ := strings.Cut(row, "`")
			documented = append(documented, path)
		}
	}
	slices.Sort(required)
	slices.Sort(documented)
	if !slices.Equal(required, documented) {
		t.Errorf("docs/dependencies.md: got\n  %s\nwant, from go.mod\n  %s", strings.Join(documented, "\n  "),
			strings.Join(required, "\n  "))
	}
}

// local returns the path of a package within this module. The path of package
// main, the command line, is empty.
func local(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func goOutput(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: got error %v, want none\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// TestModuleHasNoOpenTelemetry checks that go.mod does not require
// OpenTelemetry, so that users of runner do not have to download it. Only the
// separate module examples/tracing requires it.
func TestModuleHasNoOpenTelemetry(t *testing.T) {
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal([]byte(goOutput(t, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) == 0 {
		t.Fatal("got no required modules in go.mod, want some")
	}
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Path, "go.opentelemetry.io/") {
			t.Errorf("go.mod: got %s, want no module of OpenTelemetry", r.Path)
		}
	}
}

# Shorthands. .ci/run does not need them.
GO        ?= go
BENCHTIME ?= 1s
FUZZTIME  ?= 30s
TORTURE   ?= 30m
SOAKTIME  ?= 5m
# SQLite is C turned into Go, one connection per goroutine: to watch its every load and store makes the race run four times slower. Ours stay
# watched; RACE= watches all.
RACE      ?= -gcflags=modernc.org/sqlite/lib=-race=false
# urfave_cli_no_docs leaves out a generator of manual pages that nothing here calls.
BUILD     := -tags urfave_cli_no_docs -trimpath -ldflags "-s -w"
TARGETS   := linux/amd64 linux/arm64 linux/arm darwin/arm64 windows/amd64 freebsd/amd64

.PHONY: build test race lint bench benchmarks fuzz torture torture-postgres storm failures mutants soak cross docs ci clean

build: ## bin/runner, small
	CGO_ENABLED=0 $(GO) build $(BUILD) -o bin/runner .

test:
	$(GO) test ./...

race:
	$(GO) test -race $(RACE) ./...

lint:
	$(GO) vet ./...
	golangci-lint run ./...

bench: ## runner beside its peers, about 40 minutes; rewrites the figures of docs/performance.md and its plots, and adds to docs/dev/bench-history.tsv
	bench/run -out ../docs/performance -page ../docs/performance.md -history ../docs/dev/bench-history.tsv -commit $$(git rev-parse --short HEAD)

benchmarks: ## figures of each package; ratios to a bare loop in the same run say more than the figures themselves
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...

fuzz: ## every fuzz test there is, one after the other
	@grep -roE '^func Fuzz\w+' --include='*_test.go' . | sed -E 's,/[^/]*:func , ,' | while read -r dir name; do \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; done

torture: build ## half an hour of it; TORTURE=8h for a release
	bin/runner selftest --for $(TORTURE) --json

failures: ## whatever SQLite does with a file fails once: every operation of a task's life and of an upgrade, where go test takes every fifth
	$(GO) test -count=1 -run Survives ./db -stride 1

torture-postgres: build ## the same on a PostgreSQL server, which is killed, too, and whose connections are cut
	bin/runner selftest --postgres --for $(TORTURE) --json

storm: ## 200 times what depends on chance: a worker killed in a storm of starts, one stopped at any moment
	$(GO) test -run 'Storm|AnyMoment' -timeout 60m -v ./internal/supervisor ./runner -rounds 200

mutants: ## each known bug is put in, and must be found
	$(GO) test -tags mutants -run 'TestMutants$$' -parallel 2 -timeout 60m -v ./internal/selftest | grep -E '^(found|FAIL|ok|---|    )'

soak: ## schedules, lanes, limits and retention for minutes: no tick missed or doubled, the size of the database flat
	$(GO) test -tags soak -run '^TestSoak$$' -v -timeout 0 ./test -soak $(SOAKTIME)

cross: ## dist/runner-OS-ARCH for all targets
	@for target in $(TARGETS); do \
		out=dist/runner-$$(echo $$target | tr / -); case $$target in windows/*) out=$$out.exe;; esac; echo $$out; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) build $(BUILD) -o $$out . || exit 1; done

docs: ## rewrite what is generated
	UPDATE_DOCS=1 $(GO) test -run 'TestStatesAreDocumented|TestManualPage' ./jobs .
	UPDATE_DOCS=1 $(GO) test -run TestManualPageIsTheHelp .

ci:
	.ci/run

clean:
	rm -rf bin dist

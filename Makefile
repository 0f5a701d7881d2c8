# The targets call the scripts of scripts/, which hold the flags. .ci/run calls the same scripts.
PREFIX ?= /usr/local# where make install puts the files
DESTDIR ?=# a directory in place of /, for packages
FOR ?=# how long rows, selftest and soak take, such as 30m; each has its own default

export FOR

.PHONY: help build install uninstall release package test tools lint race user postgres examples cross rename screenshots service limits readme failures rows selftest \
	selftest-user selftest-postgres mutants benchmarks peers bench fuzz storm soak live-log docs sample ci clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 20

build: ## bin/runner as it is released
	scripts/build

install: ## program, manual page, completions, units below PREFIX (/usr/local); make build comes first
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall: ## remove what make install installs
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install remove

release: ## dist: archives for every target, deb and rpm packages, checksums
	scripts/release

test: ## all tests, about 2 minutes
	go test ./...

tools: ## install what the checks need (Debian, as root)
	scripts/tools

package: ## a release, tried: reproducible, the packages in an empty root (Debian, as root)
	scripts/package

lint: ## go vet, gofmt, golangci-lint, go mod tidy
	scripts/lint

race: ## all tests with the race detector; a skipped test fails (SKIPS=allowed lets it pass)
	scripts/race

user: ## the scripts of the command line as nobody (as root)
	scripts/user

postgres: ## the tests that need a PostgreSQL server
	scripts/postgres

examples: ## the programs of examples/
	scripts/examples

cross: ## compile and vet for every target
	scripts/cross

rename: ## contrib/rename-module: a program fetches the module by its new path
	scripts/rename

service: ## runner service under a systemd of its own (Linux, as root)
	scripts/service

limits: ## memory and CPU limits of tasks on a kernel of its own, user mode Linux (Debian, as root)
	scripts/limits

readme: ## the first command of README.md in a clean clone
	scripts/readme

failures: ## every disk operation fails once
	scripts/failures

rows: ## rows with extreme values beside a worker; FOR=10m
	scripts/rows

selftest: ## kill and stop workers for a minute; FOR=8h before a release
	scripts/selftest

selftest-user: ## the same by a user who is not root
	scripts/selftest user

selftest-postgres: ## the same on a PostgreSQL server
	scripts/selftest postgres

mutants: ## build each known bug in; the tests must find it
	scripts/mutants

benchmarks: ## benchmarks of the packages, short; ratios to a bare loop in the same run say more than the figures
	scripts/benchmarks

peers: ## the comparison with other job systems, short
	scripts/peers

bench: ## the whole comparison, about 40 minutes; writes docs/performance and docs/dev/bench-history.tsv
	bench/run -out ../docs/performance -page ../docs/performance.md -history ../docs/dev/bench-history.tsv -commit $$(git rev-parse --short HEAD)

fuzz: ## every fuzz test, one after the other; FOR=30s each
	@grep -roE '^func Fuzz\w+' --include='*_test.go' . | sed -E 's,/[^/]*:func , ,' | while read -r dir name; do \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(or $(FOR),30s) "$$dir" || exit 1; done

storm: ## 200 rounds of the tests that depend on chance: kills during many starts, stops at any moment
	go test -run 'DuringManyStarts|AtAnyTime' -timeout 60m -v ./internal/supervisor ./runner -rounds 200

soak: ## schedules, lanes, limits and retention for FOR=5m: no tick missed or doubled, no growth of the database
	go test -tags soak -run '^TestSoak$$' -v -timeout 0 ./test -soak $(or $(FOR),5m)

live-log: ## a browser follows a task that prints 1000 lines per second for a minute, and misses none
	scripts/live-log

screenshots: ## pictures of every page at four widths in both themes; DIR=dist/screenshots
	RUNNER_SCREENSHOTS=$(abspath $(or $(DIR),dist/screenshots)) go test -count=1 -run 'InBrowser|ListHolds|FromAlert' -v ./web

docs: ## rewrite the generated parts of docs/ and contrib/
	UPDATE_DOCS=1 go test -count=1 -run 'TestStatesAreDocumented' ./test/testkit/transitions
	UPDATE_DOCS=1 go test -count=1 -run 'TestManualPageIsHelp' .
	UPDATE_DOCS=1 go test -count=1 -run 'TestPicture|TestOptionTables|TestErrorKinds' ./test

ci: ## everything, as .ci/run does it
	.ci/run

sample: ## 100 random comments and 100 random sentences to judge; SEED=7
	@go run ./test/sample -seed $(or $(SEED),1)

clean: ## remove bin, dist and .tools
	rm -rf bin dist .tools

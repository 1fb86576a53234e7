# Everything is built with Go alone. What else a target needs is installed by
# scripts/deps where it runs as root on Debian; elsewhere it says what to install.

GO    ?= go
FLAGS := -trimpath -ldflags '-s -w'

.PHONY: build run test lint bench bench-scan crash hil deb deb-test clean

build:
	CGO_ENABLED=0 $(GO) build $(FLAGS) -o bin/ ./cmd/gated ./cmd/ledgerd ./cmd/gatectl

run: build
	bin/gatectl lab demo testdata/frames

# The race detector needs a C compiler. -count=1: a test that passed before says
# nothing about this machine now.
test: lint
	scripts/deps gcc strace chromium postgresql
	$(GO) test -race -count=1 -timeout 20m ./...
	scripts/hil if-possible

lint:
	test -z "$$(gofmt -l cmd internal hardware)" || { gofmt -l cmd internal hardware; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

bench:
	$(GO) test -run '^$$' -bench . -benchtime 2s ./...

# The reader on real pictures: CORPUS holds frames/SET/NAME.png and truth.jsonl.
bench-scan:
	test -n "$(CORPUS)" || { echo 'make bench-scan CORPUS=directory'; exit 2; }
	$(GO) run ./internal/scan/scanbench $(CORPUS)

# What a power cut could leave of a gate's and a ledger's stores, and every call on
# their files made to fail in every way ("make test" tries one way for each call). It
# mounts a file system of its own (FUSE): as root, or with fusermount3.
crash:
	CRASH=full $(GO) test -v -count=1 -timeout 20m ./internal/crashtest

# The drivers on emulated boards: Debian's kernels, the lines seen from outside.
hil:
	scripts/hil

# Packages for a Pi and for the centre, in build/deb; deb-test proves them in a
# clean Debian root, as root.
deb:
	scripts/deb

deb-test:
	scripts/deb-test

clean:
	rm -rf bin build

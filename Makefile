# vfsd. `make help` lists the targets.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s
SOAK     ?= 10m

.DEFAULT_GOAL := help
.PHONY: help build run stop test unit integration soak bench lint fuzz deps clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# vfsctl starts for every tool call: without the C library it starts a quarter faster.
build: ## build bin/vfsd and bin/vfsctl
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/vfsd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/vfsctl

run: build ## build, mount ./workspace on ./mnt and print three commands to try
	@scripts/run

stop: ## unmount what make run mounted
	@scripts/run stop

test: deps lint unit integration ## build and test everything, race detector on (needs Go, root and /dev/fuse)

unit: ## test every package by itself
	$(GO) test -race -timeout 8m $$($(GO) list ./... | grep -v /integration)

integration: ## test the real binaries on real mounts
	$(GO) test -race -count=1 -timeout 9m ./integration

soak: ## random writers with known truth, for SOAK (10m unless set)
	VFSD_SOAK=$(SOAK) $(GO) test -race -count=1 -timeout 0 -v -run 'TestTruth$$' ./integration

bench: deps build ## compare the mount with the bare disk and its peers; prints a table, writes bench.json
	$(GO) build -trimpath -o bin/ ./integration/bench
	bin/bench -json bench.json

lint: ## gofmt and go vet
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...

fuzz: ## fuzz every decoder, FUZZTIME each
	@scripts/fuzz $(FUZZTIME)

deps: ## install the distribution's packages that the tests use
	@scripts/deps

clean: ## remove what was built
	rm -rf bin bench.json

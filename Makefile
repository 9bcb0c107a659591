# weft: `make help` lists the targets. All of them work as root; run and test
# also work without, through a user namespace.

SHELL     := /bin/bash
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# grpc's traces use templates, which call methods by name: without them the linker drops unused methods.
TAGS      := grpcnotrace
LDFLAGS   := -s -w -X main.version=$(VERSION)
# RACE=1 is the race detector, which needs a C compiler.
RACE      ?=
# Many packages wait for the kernel or for timeouts. With the race detector they compute more.
TESTFLAGS ?= -count=1 -shuffle=on -timeout=40m -p=$(if $(RACE),2,4)
# Packages that start no goroutine: with RACE=1 they are tested without the race detector, five times as fast.
# What uses them in several goroutines is tested with it.
PURE      := $(GO) list ./nft/... ./aggregator/desired/... ./frontends/policy/model ./frontends/policy/render ./frontends/testing/policytest ./frontends/services/model ./frontends/services/render | grep -v /nft/kernel
FUZZTIME  ?= 10s
# make bench: patterns of benchmarks to run and to leave out.
BENCH     ?= .
SKIP      ?=
BENCHTIME ?= 1s
COUNT     ?= 3
# make attack: whether it fails if the updates of others are late. Not on a busy machine.
STRICT    ?= 1
# make cyclonus: steps of each order, all with STEPS=0, and random changes; SEED=N repeats a run.
STEPS     ?= 60
CHANGES   ?= 200
SEED      ?=
# make conformance: flags, such as -conformance.short.
ARGS      ?=
LINT      := $(GO) tool -modfile=.ci/tools/go.mod golangci-lint

.PHONY: help build run test lint check generate lines bench fuzz attack e2e conformance cyclonus image release

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## build bin/weft
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/weft ./cmd/weft

run: build ## the whole system with real traffic in private network namespaces
	./bin/weft demo

test: ## all tests but those of attack and e2e, against the real kernel; RACE=1 with the race detector
	@.ci/need nft ip python3 iptables conntrack curl $(if $(RACE),gcc)
	passed=0; \
	.ci/netadmin $(GO) test $(TESTFLAGS) $(if $(RACE),-race) $$(comm -23 <($(GO) list ./... | grep -v /cmd/weft/attack | sort) <($(PURE) | sort)) || passed=1; \
	(cd knft && ../.ci/netadmin $(GO) test $(TESTFLAGS) $(if $(RACE),-race) ./...) || passed=1; \
	.ci/netadmin $(GO) test $(TESTFLAGS) $$($(PURE)) && exit $$passed

lint: ## golangci-lint and go vet, at the versions of .ci/tools
	$(GO) vet ./...
	$(LINT) run ./...
	cd knft && $(GO) vet ./... && $(GO) tool -modfile=../.ci/tools/go.mod golangci-lint run ./...

check: ## layout and import rules; generated code and protocol; plain English; links; licences
	.ci/layout
	.ci/generated
	.ci/proto
	.ci/words
	.ci/links
	cd .ci/release && $(GO) test ./... && $(GO) run . -C ../.. -licences

generate: ## write generated code, manifests, security profiles, alerts and runbooks
	@.ci/need protoc
	$(GO) generate ./...
	cd deploy/helm && $(GO) test -count=1 . -args -write
	cd deploy/security && $(GO) test -count=1 -run '^TestFiles$$' . -args -write
	cd deploy/monitoring && $(GO) test -count=1 -run '^TestFiles$$' . -args -write

lines: ## product lines by package, tests, test kits and generated code; words of comments and documents
	@.ci/lines

bench: ## benchmarks BENCH but not SKIP, against floors of the same run (root)
	@.ci/need nft ip
	.ci/ratios .ci/netadmin $(GO) test -run '^$$' -bench '$(BENCH)' $(if $(SKIP),-skip '$(SKIP)') -benchmem -benchtime $(BENCHTIME) -count $(COUNT) -p 1 -timeout 30m ./...

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

attack: ## hostile publishers against fresh daemons; predicted and measured costs of packets and transactions (root)
	@.ci/need nft ip
	.ci/netadmin $(GO) test -run '^$$' -bench '^Benchmark(Packet|Connections|Transaction|Sets)$$' -benchtime 1x ./nft/cost
	WEFT_ATTACK_STRICT=$(STRICT) .ci/netadmin $(GO) test -count=1 -v -p 1 -timeout 1h ./cmd/weft/attack

e2e: ## against a real kube-apiserver and etcd (root; the first build takes minutes)
	@.ci/need nft ip iptables ip6tables conntrack curl chromium runc strace apparmor_parser systemd-analyze systemctl
	cd deploy/helm && $(GO) test -count=1 ./...
	cd deploy/security && $(GO) test -count=1 -v -timeout 30m .
	cd deploy/monitoring && $(GO) test -count=1 -parallel 9 -timeout 20m ./...
	cd deploy/e2e && $(GO) test -count=1 -v -p 1 -timeout 30m ./...

conformance: ## Kubernetes' own sig-network specs with weft; ARGS='-conformance.short' (root)
	@.ci/need nft ip conntrack curl dig nc ss
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 24h -run '^TestConformance$$' ./conformance -conformance.proxy weft $(ARGS)

cyclonus: ## NetworkPolicies with real packets against an oracle; STEPS=0 CHANGES=1000 for all (15 minutes)
	@.ci/need nft
	cd deploy/cyclonus && $(GO) test -count=1 -v -timeout 1h . -cyclonus.steps $(STEPS) -cyclonus.changes $(CHANGES) $(if $(SEED),-cyclonus.seed $(SEED))

image: ## build the container image weft:VERSION (needs docker)
	docker build -f deploy/image/Dockerfile --build-arg VERSION=$(VERSION) -t weft:$(VERSION) .

release: ## binaries, Debian packages, image, SPDX, provenance and SHA256SUMS of HEAD, to dist
	rm -rf dist
	cd .ci/release && $(GO) run . -C ../.. -o ../../dist
	.ci/package dist

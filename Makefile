# weft: `make help` lists the targets. All of them work as root; run and test
# also work without, through a user namespace.

SHELL     := /bin/bash
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# grpc's traces use templates, which call methods by name: without them the linker drops unused methods.
TAGS      := grpcnotrace
LDFLAGS   := -s -w -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the tests run without it.
RACE      := $(if $(shell command -v gcc || command -v clang),-race)
TESTFLAGS ?= -count=1 -shuffle=on -timeout=40m
# Packages that start no goroutine: they are tested without the race detector, five times as fast. What uses
# them in several goroutines is tested with it.
PURE      := $(GO) list ./nft/... ./aggregator/desired/... ./frontends/policy/model ./frontends/policy/render ./frontends/policy/policytest ./frontends/services/model ./frontends/services/render | grep -v /nft/kernel
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
COUNT     ?= 3
BENCH     ?= .
SKIP      ?=
DURATION  ?= 30s
OBJECTS   ?= 10000
SEED      ?=
POLICIES  ?= 100000x1000x10000
EXPLAIN   ?= 10000x10
SIZES     ?= 1000x10,10000x10,1x100000
API       ?= replay,real
REAL      ?= 1000x10
PROXY     ?= weft
BASE      ?= HEAD
RUNS      ?= 1
PEER      ?=
TABLE     ?=
PROFILE   ?=
# Steps of each order and random changes of make cyclonus; all steps are STEPS=0.
STEPS     ?= 60
CHANGES   ?= 200
# make conformance: expressions for names of specs, how many at a time, SHORT=1 for the short list,
# CHAOS=1 kills the proxy again and again.
FOCUS     ?=
NODES     ?=
PROCS     ?=
SHORT     ?=
FILES     ?=
CHAOS     ?=
MAN       ?= bin/man
# Whether an attack fails if the updates of others are late: not on a busy machine.
STRICT    ?= 1
LINT      := $(GO) tool -modfile=.ci/tools/go.mod golangci-lint

.PHONY: help build run test lint generate check lines bench bench-scale bench-against bench-peers bench-fleet fuzz chaos attack wedge faults e2e migration upgrade install-try manifests profiles monitoring incidents conformance cyclonus man image release release-again package nft-versions field kernels clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## build bin/weft
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/weft ./cmd/weft

run: build ## the whole system with real traffic in private network namespaces
	./bin/weft demo

test: ## all tests, against the real kernel
	@.ci/need nft ip python3 iptables conntrack curl
	passed=0; \
	.ci/netadmin $(GO) test $(TESTFLAGS) $(RACE) $$(comm -23 <($(GO) list ./... | sort) <($(PURE) | sort)) || passed=1; \
	(cd knft && ../.ci/netadmin $(GO) test $(TESTFLAGS) $(RACE) ./...) || passed=1; \
	.ci/netadmin $(GO) test $(TESTFLAGS) $$($(PURE)) && exit $$passed

lint: ## golangci-lint and go vet, at the versions of .ci/tools
	$(GO) vet ./...
	$(LINT) run ./...
	cd knft && $(GO) vet ./... && $(GO) tool -modfile=../.ci/tools/go.mod golangci-lint run ./...

generate: ## write generated code anew
	@.ci/need protoc
	$(GO) generate ./...

check: ## layout and import rules; generated code and protocol; plain English; links; licences
	.ci/layout
	.ci/generated
	.ci/proto
	.ci/words
	.ci/links
	cd .ci/release && $(GO) test ./... && $(GO) run . -C ../.. -licences

lines: ## product lines by package, and those of tests, test kits and generated code; words of comments and documents
	@.ci/lines

bench: ## benchmarks BENCH but not SKIP, against floors of the same run (root)
	@.ci/need nft ip
	.ci/ratios .ci/netadmin $(GO) test -run '^$$' -bench '$(BENCH)' $(if $(SKIP),-skip '$(SKIP)') -benchmem -benchtime $(BENCHTIME) -count $(COUNT) -p 1 -timeout 30m ./...

bench-scale: ## weft run on clusters of SIZES, of POLICIES and of EXPLAIN, from API as PROXY follows it; TABLE=FILE, PROFILE=DIR
	@.ci/need nft ip
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 3h ./scale -scale.sizes "$(SIZES)" -scale.policies "$(POLICIES)" -scale.explain "$(EXPLAIN)" -scale.changes 100 -scale.api $(API) -scale.real $(REAL) \
		-scale.proxy $(PROXY) -scale.duration $(DURATION) -scale.rest 12s -scale.runs $(RUNS) $(if $(TABLE),-scale.table $(abspath $(TABLE))) \
		$(if $(PROFILE),-scale.profile $(abspath $(PROFILE)))

bench-against: SIZES := 1000x10,10000x10
bench-against: API := replay
bench-against: ## weft run beside the weft of commit BASE, on clusters of SIZES, from API: what both cost, and the ratios
	@.ci/need nft ip
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 3h -run '^TestAgainst$$' ./scale -scale.against $(BASE) -scale.sizes "$(SIZES)" -scale.api $(API) \
		-scale.policies 20000x200x2000 -scale.duration 3s -scale.rest 12s -scale.turns 12

bench-peers: ## weft run with 1,000 policies beside another engine, PEER='NAME=PROGRAM ARGUMENTS'; RUNS=N (root)
	@.ci/need nft ip
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 1h ./peers -peers.runs $(RUNS) -peers.changes 10 -peers.engine '$(PEER)'

bench-fleet: ## the load of NODES (5,000) on an API server that is away for DURATION
	@.ci/need ip
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 2h ./fleet -fleet.nodes $(or $(NODES),5000) -fleet.outage $(DURATION) -fleet.patience 20m

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

chaos: ## kill, stop and damage everything for DURATION; SEED=N repeats a run
	@.ci/need nft ip
	.ci/netadmin $(GO) test $(RACE) -count=1 -v -timeout 3h -run '^TestChaos$$' ./aggregator/chaos \
		-chaos.duration $(DURATION) $(if $(SEED),-chaos.seed $(SEED),-chaos.fresh)

attack: ## hostile publishers against fresh daemons, and what others notice of each; what packets and transactions cost, predicted and measured (root)
	@.ci/need nft ip
	.ci/netadmin $(GO) test -run '^$$' -bench '^Benchmark(Packet|Connections|Transaction|Sets)$$' -benchtime 1x ./nft/cost
	WEFT_ATTACK_STRICT=$(STRICT) .ci/netadmin $(GO) test -count=1 -v -p 1 -timeout 1h ./cmd/weft/attack

wedge: ## OBJECTS random objects at and over every limit among 200 good ones: these are in force within 2 s, and what is said is what the kernel holds; SEED=N repeats
	.ci/netadmin $(GO) test -count=1 -v -p 1 -timeout 2h -run '^TestWedge$$' ./frontends/services ./frontends/policy -wedge.objects $(OBJECTS) -wedge.good 200 -wedge.late 2s $(if $(SEED),-wedge.seed $(SEED))

faults: ## faults, seeded one after the other: how soon weft doctor finds each, and what a reader enters; TABLE=FILE (root)
	@.ci/need nft ip python3 iptables conntrack curl
	$(GO) test -count=1 -v -timeout 1h ./cmd/weft/doctor/faults $(if $(TABLE),-faults.transcript $(abspath $(TABLE)))

e2e: ## against a real kube-apiserver and etcd (root; the first build takes minutes)
	@.ci/need nft ip iptables ip6tables conntrack curl chromium runc strace apparmor_parser systemd-analyze systemctl
	cd deploy/helm && $(GO) test -count=1 ./...
	cd deploy/security && $(GO) test -count=1 -v -timeout 30m .
	cd deploy/monitoring && $(GO) test -count=1 -parallel 9 -timeout 20m ./...
	cd deploy/e2e/sctp && $(GO) test -count=1 ./...
	cd deploy/e2e/coredns && $(GO) test -count=1 ./...
	cd deploy/e2e && $(GO) test -count=1 -v -p 1 -timeout 30m ./...

migration: ## nodes from kube-proxy to weft and back under traffic, from each mode of kube-proxy (root)
	@.ci/need nft ip iptables ip6tables conntrack
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 1h -run '^TestMigration$$' ./migration -migration.stale 1s -migration.modes nftables,iptables-nft,iptables-legacy

upgrade: ## from an earlier commit's weft to this one and back under traffic, one node after the other, and what each update writes (root)
	@.ci/need nft ip iptables ip6tables conntrack
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 1h -run '^TestUpgrade' ./migration -migration.stale 1s -migration.unavailable 10%

install-try: ## install on a cluster of each kind as a new user does: commands, seconds, and what wrong turns say; RUNS=N, TABLE=FILE (root)
	@.ci/need nft ip iptables ip6tables conntrack systemctl
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 2h ./install -install.kinds all -install.slow -install.times $(RUNS) $(if $(TABLE),-install.table $(abspath $(TABLE)))

manifests: ## write deploy/kubernetes anew, from the chart in deploy/helm
	cd deploy/helm && $(GO) test -count=1 . -args -write

profiles: ## write deploy/security's profiles for seccomp and AppArmor anew
	cd deploy/security && $(GO) test -count=1 -run '^TestFiles$$' . -args -write

monitoring: ## write rules, dashboards and runbooks anew, from deploy/monitoring/source.yaml
	cd deploy/monitoring && $(GO) test -count=1 -run '^TestFiles$$' . -args -write

incidents: ## faults, each on a node of its own: what weft reports of each and where; TABLE=FILE (root)
	@.ci/need nft ip conntrack curl
	cd deploy/monitoring && $(GO) test -count=1 -v -parallel 9 -timeout 20m -run '^TestIncidents$$' . $(if $(TABLE),-args -incidents.table $(abspath $(TABLE)))

conformance: ## Kubernetes' own sig-network specs like FOCUS, with PROXY, RUNS times; SHORT=1, CHAOS=1, TABLE=FILE (root)
	@.ci/need nft ip conntrack curl dig nc ss
	cd deploy/e2e && $(GO) test -count=1 -v -timeout 24h -run '^TestConformance$$' ./conformance -conformance.proxy $(PROXY) -conformance.runs $(RUNS) \
		$(if $(FOCUS),-conformance.focus '$(FOCUS)') $(if $(SKIP),-conformance.skip '$(SKIP)') $(if $(NODES),-conformance.nodes $(NODES)) \
		$(if $(PROCS),-conformance.procs $(PROCS)) $(if $(SHORT),-conformance.short) $(if $(CHAOS),-conformance.chaos) \
		$(if $(TABLE),-conformance.table $(abspath $(TABLE)))

cyclonus: ## NetworkPolicies with real packets against an oracle; STEPS=0 CHANGES=1000 for all (15 minutes); SEED=N repeats a run
	@.ci/need nft
	cd deploy/cyclonus && $(GO) test -count=1 -v -timeout 1h . -cyclonus.steps $(STEPS) -cyclonus.changes $(CHANGES) $(if $(SEED),-cyclonus.seed $(SEED))

man: ## write a manual page of each command to MAN
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(GO) test -count=1 -run '^TestManPages$$' ./cmd/weft -man.dir "$(abspath $(MAN))"
	@ls $(MAN) | sed 's|^|$(MAN)/|' | head -3; echo "... $$(ls $(MAN) | wc -l) pages: man $(MAN)/weft.1"

image: ## build the container image weft:VERSION (needs docker)
	docker build -f deploy/image/Dockerfile --build-arg VERSION=$(VERSION) -t weft:$(VERSION) .

release: ## binaries, Debian packages, image, SPDX, provenance and SHA256SUMS of HEAD, to dist
	rm -rf dist
	cd .ci/release && $(GO) run . -C ../.. -o ../../dist
	.ci/package dist

release-again: ## build the release twice, with other directories and caches, and compare the checksums
	.ci/release/again

package: ## build the Debian package of this machine's architecture, and install, upgrade, run and purge it on a copy of the root (root)
	rm -rf bin/package
	cd .ci/release && $(GO) run . -C ../.. -o ../../bin/package -debian $$(dpkg --print-architecture)
	.ci/package-install bin/package/*.deb

nft-versions: ## other versions of nft on what weft commits: Debian's, and those of BUILT=DIRECTORY; TABLE=FILE (root)
	@.ci/need nft
	cd deploy/compat && $(GO) test -count=1 -v -timeout 1h ./nft $(if $(BUILT),-nft.built $(abspath $(BUILT))) $(if $(TABLE),-nft.table $(abspath $(TABLE)))

field: ## the .nft files of the directory FILES with nft and with weft: both accept, differ, one refuses and why; and what weft check finds (root)
	@.ci/need nft ip
	cd deploy/compat && $(GO) test -count=1 -v -timeout 1h -run '^TestField$$' ./nft -nft.field '$(abspath $(FILES))'

kernels: ## kernel tests and weft demo on Debian's kernels, in software emulation; SUITES=a,b, SHORT=1, TABLE=FILE (half an hour)
	@.ci/need nft ip conntrack qemu-system-x86_64 busybox depmod xz
	cd deploy/compat && $(GO) test -count=1 -v -timeout 2h ./kernels $(if $(SHORT),-short) -args $(if $(SUITES),-kernels.suites $(SUITES)) $(if $(TABLE),-kernels.table $(abspath $(TABLE)))

clean: ## remove what the targets made
	rm -rf bin .cache dist

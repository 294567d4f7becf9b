# Everything here works without an AWS account and without a network, once Go
# has the modules. `make` alone lists the targets.

GO       ?= go
BIN      := bin/weir
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# kustomize's loader of Go plugins imports Go's plugin package. A binary that links
# it keeps all unused code. This tag leaves the loader out.
TAGS     := kustomize_disable_go_plugin_support
# The flags of a release, so that build, test and release share the build cache.
OWNFLAGS := -tags=$(TAGS) -trimpath
export GOFLAGS := $(strip $(filter-out $(OWNFLAGS),$(shell $(GO) env GOFLAGS)) $(OWNFLAGS))
export CGO_ENABLED ?= 0
FUZZTIME ?= 20s
FUZZPKG  ?= ./...
ENDPOINT ?=
# Loops over faults and drifts, call by call: one process at a time, and minutes
# under the race detector. make test runs them.
LONGFAULTS := StoppedAtAnyCall|Whatever|FaultsWhile|InAnyOrder|DriftIsCorrectedOrReported|FellBehindDoesNotFight|RolloutsOfOneCommitAreBounded|ReadsOfAPassAtRest|CallsOfFiftyRollouts|ParkedPoolIsAtRest|DeletedEachTime|EveryRow|EveryTemplateField|ImportOfManyPools|ImportedContents|ImportedFleets|StoppedPolicyGoesBack|StoppedChangeGoesBack|AWayBackUnderAHold|RootVolumes$$|EveryQuestionMayFail|MoveCrash|WritesOfNewPools
# One goroutine, and what it holds or compares, or a build that is large so that it is slow: the race detector finds nothing there,
# and takes minutes. make test runs them.
ALONE := HostileAnswers|KeptPlansAreBounded|ASlowRenderHolds|PackThatUnfolds|HostilePacks|DraftsWaitForEachOther|OneHeavyReview|IndexHoldsLittle|IndexIsThatOfGit|TrailersAreGits|TakingAPackInIsBounded|SecretsCost|SecretsOfGone|AMergeAppliesTheImagesThatItsPlanShowed|RendersOfEarlier|AReloadWithoutGit|PruneTrailers|HostileTLS|WhyNoMachine|SomebodyActsByTheKeyboard|ADaemonAtAnOldCommit|GoingBack|RecordsAreMoved|CommentsAreShortened|AnswersAreBounded|ValuesAreCounted|APageOfLongTexts|LongTextsAreCut
# One field, object or rule after the other, over the same goroutines as the tests that are left.
ALIKE := Option|Fields|Members|Nodegroup|Hook|Adopt|Prune|Zero|Weights|LaunchConfig|Window|Launches|Versions
# The same of what a daemon does: one pull request after the other.
CASES := ATrailerCountsForWhatWasShown|TheShownDigestIsThatOfTheMerge
# These take half a minute and more, the longest first: at the end one alone would leave processors idle.
# Daemons wait at times, so more packages run beside each other than there are processors.
SLOW      := ./cmd/weir ./reconciler ./cmd/weir/internal/app ./render/kust ./status/pulls ./cmd/weir/internal/simulate ./source
CPUS      ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# It runs go test, and lists at the end what failed and which tests were skipped, and why.
GOTEST    := $(GO) tool -modfile=deploy/tools/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --format-icons text --
# Properties draw their cases from this seed: what a change breaks is found each time, and
# chance holds up nobody. make soak draws others.
export RAPID_SEED ?= 1
# make soak draws more.
test quick: export RAPID_CHECKS ?= 40
# The compiler collects garbage a fourth as often, which takes a quarter off its CPU time. A process
# that has taken 2 GiB collects more often.
COMPILER := GOGC=400 GOMEMLIMIT=2GiB
# What tests need is compiled before the first one runs.
COMPILE   = $(COMPILER) $(GO) list -export -test -deps
# Tests make much garbage and live for minutes: fewer collections cost memory alone.
test quick: export GOGC ?= 200
# Tests write their files to memory where it has 4 GiB free and may hold programs: databases and
# repositories sync each write, and a disk takes up to half of the time for that. Go's own build files stay on disk.
MEMORY := $(shell d=/dev/shm; [ -w $$d ] && [ "$$(df -Pk $$d | awk 'NR == 2 {print $$4}')" -gt 4194304 ] && ! grep -qE " $$d [a-z]+ [^ ]*noexec" /proc/mounts && echo $$d)
DISK   := $(or $(TMPDIR),/tmp)
ifneq ($(MEMORY),)
test quick race: export GOTMPDIR ?= $(DISK)
test quick race: export TMPDIR := $(MEMORY)
endif
PROPERTIES = $(shell grep -rl --include='*_test.go' '"pgregory.net/rapid"' . | xargs -n1 dirname | sort -u)
# make lint vets. From a cold cache, go test would vet all dependencies too.
TESTFLAGS := -vet=off -ldflags=-w -timeout 30m -p $(shell expr 2 '*' $(CPUS))
# Under the race detector waiting tests use CPU time too, so fewer packages run in parallel.
RACEFLAGS := -race -short -vet=off -ldflags=-w -timeout 30m -parallel $(CPUS)
# The packages of the daemon that start goroutines, or share something between them. In the
# others there is no race to find.
CONCURRENT = $(shell grep -rlE --include='*.go' --exclude='*_test.go' '^[[:space:]]+go [a-zA-Z]|\<sync\.[A-Z]|\<atomic\.|\<errgroup\.' cmd/weir/internal reconciler/accounts reconciler/coord reconciler/fleet reconciler/gates reconciler/resolve reconciler/state render/redact source status | xargs -n1 dirname | sort -u | sed 's,^,./,')
# Everything in a release is of this time, so that it can be built again.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1)
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
RELEASE  := ./deploy/release -version "$(VERSION)" -commit "$(COMMIT)" -epoch "$(SOURCE_DATE_EPOCH)"
LINTER   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := help
.PHONY: help run build test quick soak simulate race race-daemon race-passes lint fuzz cover bench bench-peers pictures contract oracle oracle-capa release release-check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## the main job on this machine: embedded AWS, a Git repository, the daemon and its page
	@$(BIN) demo

build: ## build bin/weir
	@$(COMPILER) GO='$(GO)' deploy/build -ldflags '$(LDFLAGS)' -o $(BIN)

test: ## all tests: no network, no credentials
	@$(COMPILE) ./... >/dev/null
	$(GOTEST) $(TESTFLAGS) $(SLOW) ./...

quick: ## the tests of the packages that take less than half a minute: make test has their results then
	@$(COMPILE) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(SLOW))") >/dev/null
	$(GOTEST) $(TESTFLAGS) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(SLOW))")

soak: export RAPID_SEED = 0
soak: ## the tests that take minutes: a daemon that lives for DAYS=2000 (RESTART=10 starts it again each ten days, LOG=file), 5,000 machines rolled in waves (CLUSTERS, POOLS, MACHINES and SEED by WEIR_SIMULATE_…), three daemons that are killed for ten minutes over each engine, large fleets, EC2's own quotas and limits, all cases of which make test has a sample, and properties by random seeds
	WEIR_SOAK=1 WEIR_SIMULATE_DAYS='$(DAYS)' WEIR_SIMULATE_RESTART='$(RESTART)' WEIR_SIMULATE_LOG='$(LOG)' $(GO) test -count=1 -v -timeout 3h -run 'TestSoak|TestMembers|TestSimulate' ./cmd/weir/internal/simulate/
	WEIR_SEVERAL=10m $(GO) test -count=1 -v -timeout 60m -run TestSeveralProcesses ./cmd/weir/
	WEIR_SEVERAL=10m WEIR_SEVERAL_ENGINE=dynamodb $(GO) test -count=1 -v -timeout 60m -run TestSeveralProcesses ./cmd/weir/
	WEIR_SOAK=1 $(GO) test -count=1 -timeout 60m -run 'AtTheQuota|StoppedAtAnyCall|WhateverCallIsLost|AreBounded|DeletedEachTime|UnderThrottling|ReadsOfAPass|Soak|TwoThousandPools|ALargeFleet|GoesBack|FellBehind|Normalisation|HostileTrees' ./reconciler/ ./reconciler/simulate/ ./render/kust/
	RAPID_CHECKS=1000 $(GO) test -count=1 -timeout 3h $(PROPERTIES)

simulate: ## whole daemons in a world that goes wrong by seeds: SEEDS=1-100, DAYS=2, EVENTS=48, FAULTS=1, DAEMONS=1, MEMBERS=3 of one instance for HOURS=2, LEAVE=steps, LOG=file; REPLAYS=20 compares runs of a seed; PLANT=. for planted faults, by name
	WEIR_SIMULATE_PLANT='$(PLANT)' WEIR_SIMULATE_REPLAYS='$(REPLAYS)' WEIR_SIMULATE_SEEDS='$(SEEDS)' WEIR_SIMULATE_DAYS='$(DAYS)' WEIR_SIMULATE_FAULTS='$(FAULTS)' WEIR_SIMULATE_EVENTS='$(EVENTS)' WEIR_SIMULATE_DAEMONS='$(DAEMONS)' WEIR_SIMULATE_MEMBERS='$(MEMBERS)' WEIR_SIMULATE_HOURS='$(HOURS)' WEIR_SIMULATE_LEAVE='$(LEAVE)' WEIR_SIMULATE_LOG='$(LOG)' $(GO) test -count=1 -v -timeout 24h -run '$(if $(PLANT),TestPlantedFaultsAreFound/$(PLANT),$(if $(REPLAYS),TestASeedReplays,TestSimulate))' ./cmd/weir/internal/simulate/

race race-daemon race-passes: export CGO_ENABLED = 1

race: ## the concurrent packages under the race detector
	$(COMPILER) $(GO) build -race $(CONCURRENT) ./reconciler
	@$(MAKE) --no-print-directory -j2 race-daemon race-passes

race-daemon:
	$(GO) test $(RACEFLAGS) -p $(shell expr 1 + $(CPUS)) -skip '$(ALONE)|$(CASES)' ./cmd/weir/internal/app ./status/pulls ./source ./reconciler/coord/dynamo $(CONCURRENT)

race-passes:
	$(GO) test $(RACEFLAGS) -skip '$(LONGFAULTS)|$(ALIKE)' ./reconciler/
	$(GO) test -race -vet=off -ldflags=-w -run 'Concurrent|Abandoned|TimeUp|Golden' $$(grep -rlE --include='*_test.go' '^func Test[A-Za-z]*(Concurrent|Abandoned|TimeUp|Golden)' render | xargs -n1 dirname | sort -u | sed 's,^,./,')

lint: ## formatting and the linters of .golangci.yml, of which govet has all that go vet has
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "$$files" >&2; exit 1; fi
	@if command -v golangci-lint >/dev/null 2>&1; then golangci-lint run ./...; else $(GO) run $(LINTER) run ./...; fi

fuzz: ## each fuzzer of FUZZPKG for FUZZTIME
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; cache=$$($(GO) env GOCACHE)/fuzz; \
	for pkg in $$($(GO) list $(FUZZPKG)); do \
	  dir=$$($(GO) list -f '{{.Dir}}' $$pkg); grep -qs '^func Fuzz' "$$dir"/*_test.go || continue; \
	  $(GO) test -c -vet=off -ldflags=-w -fuzz=. -o "$$tmp/fuzzers" $$pkg; \
	  for f in $$(cd "$$dir" && "$$tmp/fuzzers" -test.list '^Fuzz'); do echo "$$pkg $$f"; \
	    (cd "$$dir" && "$$tmp/fuzzers" -test.run '^$$' -test.fuzz "^$$f$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 1s -test.fuzzcachedir "$$cache/$$pkg"); done; done

cover: ## coverage by package, and coverage.txt
	$(GO) test -coverprofile=coverage.txt -coverpkg=./... ./... && $(GO) tool cover -func=coverage.txt | tail -1

bench: ## the benchmarks of the budgets, with their call counts asserted
	$(GO) test -run '^$$' -bench . -benchmem ./reconciler/... ./render/... ./source/...
	$(GO) test -run '^$$' -bench Pages -benchtime 20x ./status/page
	$(GO) test -run '^$$' -bench PushToFinalStatus -benchtime 200x ./cmd/weir/internal/app
	$(GO) test -run '^$$' -bench PlanOfPools -benchtime 5x ./cmd/weir
	$(GO) test -run '^$$' -bench ThousandTargets -benchtime 1x ./cmd/weir

bench-peers: build ## weir beside krusty, Terraform and CAPA, where these can be had: POOLS=100 NODEGROUPS=0
	$(GO) test -run '^$$' -bench ColdFleet -benchtime 2x ./render
	deploy/bench/peers $(BIN) $(or $(POOLS),100) $(or $(NODEGROUPS),0)

pictures: ## the pictures of the page in deploy/docs/images, by Chromium
	$(GO) test ./status/page -run DocumentationPictures -screenshots $(CURDIR)/deploy/docs/images

contract: ## the contract suite against ENDPOINT=http://…, or against moto server where it is installed
	@if [ -n "$(ENDPOINT)" ]; then WEIR_CONTRACT_ENDPOINT=$(ENDPOINT) $(GO) test -count=1 -v -run Contract ./reconciler/cloudtest/...; \
	elif command -v moto_server >/dev/null 2>&1; then WEIR_CONTRACT_MOTO=1 $(GO) test -ldflags=-w -count=1 -v -run 'ContractMoto|ContractElsewhere' ./reconciler/cloudtest/ ./reconciler/coord/dynamo; \
	else echo "contract: moto_server is not installed and no ENDPOINT is given: nothing to run against"; fi
	@if command -v aws >/dev/null 2>&1; then WEIR_TEST_AWSCLI=1 $(GO) test -ldflags=-w -count=1 -v -run 'TestScripts/^emulator_awscli$$' ./cmd/weir; \
	else echo "contract: the AWS CLI is not installed: nothing asks the emulator"; fi

oracle: ## weir's types and rules against Cluster API's and CAPA's, in a module of its own
	cd render/oracle && $(GO) test -mod=mod -vet=off -timeout 30m ./...

oracle-capa: ## CAPA's reconcilers against the emulator, in a module of its own that takes minutes to build
	cd deploy/bench/capa && $(GO) test -vet=off -timeout 30m ./...

release: ## archives, bills of materials and checksums of PLATFORMS in dist
	$(GO) run $(RELEASE) -platforms "$(PLATFORMS)"

release-check: ## a release of the last commit for this platform, built in two places, is the same, and shows its demo without Go
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	for place in one two/deeper; do mkdir -p "$$tmp/$$place"; git archive HEAD | tar -x -C "$$tmp/$$place"; \
	  (cd "$$tmp/$$place" && $(GO) run $(RELEASE) -platforms "$$($(GO) env GOOS)/$$($(GO) env GOARCH)"); done; \
	cmp "$$tmp/one/dist/SHA256SUMS" "$$tmp/two/deeper/dist/SHA256SUMS"; \
	(cd "$$tmp/one/dist" && sha256sum -c SHA256SUMS); \
	WEIR_RELEASE_ARCHIVE="$$(ls "$$tmp"/one/dist/*.tar.gz)" $(GO) test -count=1 -v -run UnpackedRelease ./deploy/release

clean: ## remove what the targets above made
	rm -rf bin dist coverage.txt

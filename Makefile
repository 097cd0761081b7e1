# What to run: make demo (see it work), make test, make build, make lint, make bench, make cases, make release.
SHELL     := /bin/sh
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -s -w -X main.version=$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
HOST_SH   := internal/collect/collector.sh playbooks/host.sh internal/sample/reader.sh $(wildcard internal/probe/*.sh)
HELPERS   := internal/probe/helper/linux-amd64.gz internal/probe/helper/linux-arm64.gz
CASES     ?= ../shared/cases

.PHONY: build helper demo test test-gpu e2e-vm lint bench cases release screenshots fuzz clean

build: helper ## bin/preflight, static, with the native helper inside
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/preflight ./cmd/preflight

helper: $(HELPERS) ## the native helper for each architecture, packed to be embedded
internal/probe/helper/linux-%.gz: FORCE
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -ldflags '-s -w' -o bin/preflight-probe-linux-$* ./cmd/preflight-probe
	@gzip -9nc bin/preflight-probe-linux-$* >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi # an unchanged helper makes nothing else anew
FORCE:

demo: build ## simulated rigs on loopback over real SSH, checked and reported; check ends with 3: the planted faults are found
	@./bin/preflight demo; code=$$?; [ $$code = 3 ] || { echo "the demo ended with $$code, not with 3 (faults found)"; exit 1; }

test: helper ## everything that needs nothing but Go and a C compiler; what is skipped says why
	$(GO) test -timeout 20m $(TESTFLAGS) ./...

test-gpu: build ## on a machine with a real GPU: all that measures, printed as it was seen
	@if ! [ -e /dev/nvidiactl ]; then echo "skip: no NVIDIA driver on this machine (/dev/nvidiactl)"; exit 0; fi; \
		for probe in links nccl; do echo "== preflight probe $$probe --local -v"; ./bin/preflight probe $$probe --local -v; echo "exit $$?"; done; \
		echo "== preflight probe burn-in --local --duration quick"; ./bin/preflight probe burn-in --local --duration quick; echo "exit $$?"; \
		echo "== preflight check --local"; ./bin/preflight check --local --save=.; echo "exit $$?"

e2e-vm: build ## playbooks on a real Debian in QEMU, with a reboot; root, debootstrap and QEMU, else it says what is missing
	@internal/integration/vm/e2e-vm.sh "$(CURDIR)/bin/preflight"

lint: ## format, vet, staticcheck, shell scripts that run on hosts
	@out=$$($(GO) tool gofumpt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not gofumpt-formatted:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@if command -v shellcheck >/dev/null 2>&1; then shellcheck -s sh $(HOST_SH) && shellcheck .ci/run .ci/real-libs docs/images/screenshots.sh internal/integration/vm/e2e-vm.sh; else echo "skip: shellcheck is not installed (apt-get install shellcheck)"; fi

bench: build ## measured figures; see docs/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./internal/facts ./internal/fleet ./checks ./cmd/preflight

fuzz: ## each fuzz target for ten seconds
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz'); do \
		$(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 10s $$p || exit 1; done; done

cases: build ## agreement with dumps of real machines, where the folder is present
	@if [ -d $(CASES) ]; then python3 $(CASES)/score.py --bin bin/preflight; else echo "skip: no $(CASES)"; fi

release: helper ## controllers for every platform and the manual pages, with checksums
	@rm -rf dist && mkdir -p dist
	@for p in $(PLATFORMS); do os=$${p%/*}; arch=$${p#*/}; echo "dist/preflight-$$os-$$arch"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o dist/preflight-$$os-$$arch ./cmd/preflight || exit 1; done
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 0) $(GO) run -ldflags '$(LDFLAGS)' ./cmd/preflight man dist/man
	@tar -C dist -czf dist/preflight-man.tar.gz man && rm -r dist/man
	@cd dist && sha256sum preflight-* > SHA256SUMS && cat SHA256SUMS

screenshots: build ## the pictures of docs/html.md, from the demo, where a chromium is
	@docs/images/screenshots.sh "$(CURDIR)/bin/preflight"

clean:
	rm -rf bin dist

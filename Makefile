# `make demo` and `make test` are all a newcomer needs; each installs or builds what is missing.

VENV := .venv
PYTHON := $(VENV)/bin/python
CARGO ?= cargo
DENY_VERSION := 0.20.2
DENY := target/tools/bin/cargo-deny
MDBOOK_VERSION := 0.5.4
MDBOOK := target/tools/bin/mdbook

.PHONY: help deb test-package docs demo test stress bench compare flame lint lint-rust lint-dependencies lint-python audit fuzz sanitize build python packages reference answers clean

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /	/' | expand -t 12

demo: build python ## route real traffic, measure it, write out/demo/report.html
	$(VENV)/bin/quiver-lab demo

test: packages python ## every level of test
	$(PYTHON) tests/levels.py

stress: build python ## changes of configuration under load, for longer: no packet may be lost (ROUNDS=8 each)
	$(PYTHON) -m pytest -q -rs tests/stress --timeout 0 --long --rounds $(or $(ROUNDS),8) --budget 3600

bench: ## clocks per packet of the graph, beside a bare loop; writes out/bench/results.json
	$(CARGO) build --release -p quiver-bench
	target/release/quiver-bench paths

compare: build python ## beside DPDK, Open vSwitch and Linux; large tables, latency, workers; writes out/compare
	$(VENV)/bin/quiver-lab compare

flame: build ## where a worker's time goes, as out/flame.svg (PID=… for a running quiverd, SECONDS=5)
	$(CARGO) run --quiet -p xtask -- flame --seconds $(or $(SECONDS),5) $(if $(PID),--pid $(PID))

lint: lint-rust lint-dependencies lint-python ## formatting, clippy, the house's own rules, licences, types of the Python parts

lint-rust:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) run --quiet -p xtask -- check

lint-dependencies: $(DENY)
	$(DENY) check bans licenses sources

lint-python: python
	$(VENV)/bin/ruff check lab tests clients
	$(VENV)/bin/ruff format --check lab tests clients
	cd lab && ../$(VENV)/bin/mypy

audit: $(DENY) ## known vulnerabilities of the libraries; fetches the RustSec database
	$(DENY) check advisories

# One that is installed is taken; else it is built once, without optimisation, and kept below target/.
$(DENY):
	@mkdir -p $(@D)
	@if command -v cargo-deny >/dev/null; then ln -sf "$$(command -v cargo-deny)" $@; else \
	echo "building cargo-deny $(DENY_VERSION) once, which takes minutes"; \
	CARGO_PROFILE_DEV_DEBUG=false $(CARGO) install --quiet --locked --debug --root target/tools \
	cargo-deny@$(DENY_VERSION); fi

$(MDBOOK):
	@mkdir -p $(@D)
	@if command -v mdbook >/dev/null; then ln -sf "$$(command -v mdbook)" $@; else \
	echo "building mdbook $(MDBOOK_VERSION) once, which takes minutes"; \
	CARGO_PROFILE_DEV_DEBUG=false $(CARGO) install --quiet --locked --debug --root target/tools \
	--no-default-features --features search mdbook@$(MDBOOK_VERSION); fi

fuzz: ## properties, then fuzz targets guided by coverage, for longer (SECONDS=600 each)
	$(CARGO) run --quiet -p xtask -- fuzz $(or $(SECONDS),600)
	$(CARGO) run --quiet -p xtask -- guided $(or $(SECONDS),600) $(TARGETS)

sanitize: ## tests of crates with unsafe code under AddressSanitizer (nightly toolchain)
	$(CARGO) run --quiet -p xtask -- sanitize $(CRATES)

build: ## the router, its client and the traffic generator
	@command -v cc >/dev/null || $(MAKE) packages
	$(CARGO) build --release -p quiverd -p quiverctl -p quiver-tg

deb: $(if $(BINARIES),,build) python ## Debian packages in out/package (BINARIES=DIR, VERSION=…, PROFILES=pkg.quiver.nolab)
	@command -v dh >/dev/null || tests/install-packages debhelper
	packaging/build-deb $(or $(BINARIES),target/release) out/package

test-package: $(if $(BINARIES),,build) python ## install, start, upgrade, remove and purge the package in a clean Debian (BINARIES=DIR)
	@tests/install-packages debhelper lintian mmdebstrap
	QUIVER_BIN_DIR=$(abspath $(or $(BINARIES),target/release)) $(PYTHON) -m pytest -q -rs tests/package --timeout 900

docs: $(MDBOOK) ## the guides and the reference as one book with search, in out/book
	$(CARGO) run --quiet -p xtask -- book out/book-source
	$(MDBOOK) build out/book-source --dest-dir $(abspath out/book)
	@echo "out/book/index.html"

reference: ## write docs/reference from the declarations
	$(CARGO) run --quiet -p xtask -- reference

answers: ## record the JSON form of the answers of shows, bin/quiverd/answers.json
	-QUIVER_RECORD_ANSWERS=1 $(CARGO) test --quiet --workspace --test quiverd-tests answers
	$(CARGO) test --quiet --workspace --test quiverd-tests answers

python: $(VENV)/.done ## the virtual environment of the lab and the tests

$(VENV)/.done: lab/pyproject.toml tests/requirements.txt
	@echo "installing the lab into $(VENV)"
	@python3 -m venv $(VENV) 2>/dev/null || { tests/install-packages python3-venv && python3 -m venv $(VENV); }
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -e 'lab[dev]' -r tests/requirements.txt
	@touch $@

packages: ## the Debian packages that the tests use as peers
	@tests/install-packages

clean: ## remove what was built
	$(CARGO) clean
	rm -rf $(VENV) out

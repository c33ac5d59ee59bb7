# SPDX-License-Identifier: GPL-2.0-or-later
PYTHON = .venv/bin/python

.PHONY: assess bench check check-c check-kernels check-slow check-tests check-unit clean docs fresh lint lock man monitor package quick release setup setup-test site

# Where the project is hosted: the only place that names it. `make docs PROJECT_URL=https://...` writes it into the site.
PROJECT_URL =

# Status 0 once the report is made, whatever the verdict; an error where there is none.
assess: setup
	@bin/fastenough assess --any-verdict $(ARGS)
	@echo 'the same program for all else: bin/fastenough --help'
	@echo 'to call it by its name in this shell: PATH="$(CURDIR)/bin:$$PATH"'

# Three tiers: what answers within a minute, each feature once with its real parts, and all the rest.
quick: setup-test
	@$(MAKE) --no-print-directory -j3 check-unit lint check-c

# Without its cache mypy takes one CPU for more than a minute. The tests, of which the unit tests come first, run beside it.
check: setup-test
	@$(MAKE) --no-print-directory -j3 lint check-c check-tests

check-tests:
	$(PYTHON) $(if $(ARGS),-m pytest $(ARGS),-m tests.tiers check)

check-slow: setup-test
	$(PYTHON) -m tests.tiers slow

bench: setup-test
	$(PYTHON) -m tests.bench.peers $(ARGS)
	PYTHONPATH=. $(PYTHON) -m tests.bench.extremes
	PYTHONPATH=. $(PYTHON) -m tests.bench.fleet
	PYTHONPATH=. $(PYTHON) -m tests.bench.archive_engines
	PYTHONPATH=. $(PYTHON) -m tests.bench.changes
	$(PYTHON) -m tests.bench.primitives
	$(PYTHON) -m tests.bench.monitor
	PYTHONPATH=. $(PYTHON) -m tests.bench.scale
	PYTHONPATH=. $(PYTHON) -m tests.bench.mutants
	PYTHONPATH=. $(PYTHON) -m tests.bench.confidence
	PYTHONPATH=. $(PYTHON) -m tests.bench.advice
	PYTHONPATH=. $(PYTHON) -m tests.bench.nights
	PYTHONPATH=. $(PYTHON) -m tests.bench.quantiles
	PYTHONPATH=. $(PYTHON) -m tests.bench.ab
	PYTHONPATH=. $(PYTHON) -m tests.bench.audit
	PYTHONPATH=. $(PYTHON) -m tests.bench.hunt
	PYTHONPATH=. $(PYTHON) -m tests.bench.deterministic
	PYTHONPATH=. $(PYTHON) -m tests.bench.paths
	PYTHONPATH=. $(PYTHON) -m tests.bench.costs
	PYTHONPATH=. $(PYTHON) -m tests.bench.worked_example
	PYTHONPATH=. $(PYTHON) -m tests.bench.kernels
	PYTHONPATH=. $(PYTHON) -m tests.bench.bisect
	PYTHONPATH=. $(PYTHON) -m tests.bench.soak
	PYTHONPATH=. $(PYTHON) -m tests.bench.history
	PYTHONPATH=. $(PYTHON) -m tests.bench.history --month 10000 --only postgresql
	FASTENOUGH_KILLS=50 $(PYTHON) -m pytest -q --timeout=1800 tests/process/history/test_history_ingest.py tests/process/history/test_history_postgresql.py
	PYTHONPATH=. $(PYTHON) -m tests.bench.farm
	PYTHONPATH=. $(PYTHON) -m tests.bench.pull
	PYTHONPATH=. $(PYTHON) -m tests.bench.farm_faults
	PYTHONPATH=. $(PYTHON) -m tests.bench.farm_cut
	PYTHONPATH=. $(PYTHON) -m tests.bench.farm_kills
	PYTHONPATH=. $(PYTHON) -m tests.bench.fleet_kills
	PYTHONPATH=. $(PYTHON) -m tests.bench.fleet_size
	PYTHONPATH=. $(PYTHON) -m tests.bench.web
	$(PYTHON) -m tests.bench.kills
	$(PYTHON) -m pytest -q -m matrix

# Both commands of the README on bare Debian systems, as root and as an ordinary user: an hour or two, needs root.
fresh:
	@setup/fresh $(ARGS)

check-unit:
	$(PYTHON) -m tests.tiers quick

# MAKEFLAGS names a job server that only makes inherit; ninja complains of it.
check-c:
	MAKEFLAGS= PATH="$(CURDIR)/.venv/bin:$$PATH" meson test -C build --print-errorlogs

# What needs a kernel that somebody built, such as one with Cobalt or EVL: docs/virtual-bench.md says what lies in IMAGES.
check-kernels: setup-test
	@test -d "$(IMAGES)" || { echo 'say which folder holds the kernels: make check-kernels IMAGES=DIR'; exit 2; }
	FASTENOUGH_IMAGES="$(abspath $(IMAGES))" $(PYTHON) -m pytest -q --timeout=600 tests/guest/*/test_kernel_*.py $(ARGS)

lint:
	.venv/bin/ruff check
	.venv/bin/ruff format --check --quiet
	.venv/bin/mypy

lock:
	cd setup && for name in run fleet test docs engines; do ../.venv/bin/pip-compile -q --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host --allow-unsafe --strip-extras --no-annotate --no-header \
		-o $$name.lock $$name.in || exit; done
	cd setup/npm && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --silent

# The website of a farm that is generated, as files in build/site: any web server shows it.
site: setup-test
	PYTHONPATH=. $(PYTHON) -m tests.support.demo_site build/site

# README, docs/ and the docstrings as one searchable site in build/docs.
docs:
	@setup/install docs
	PROJECT_URL='$(PROJECT_URL)' DISABLE_MKDOCS_2_WARNING=true PYTHONPATH=. .venv/bin/mkdocs build --quiet --strict

# Debian packages of the last commit, built in a bare Debian 12, tried in another, in build/package: needs root.
package:
	@setup/package

# Sources and static probes with their checksums, of the last commit, in build/release; the same bytes each time.
release: setup-test
	PYTHONPATH=. $(PYTHON) packaging/release.py build/release $(ARGS)

setup:
	@setup/install run

# Manual pages of all commands and programs, in build/man: man -M build/man fastenough-run
man: monitor
	@for section in 1 8; do mkdir -p build/man/man$$section; done
	@PYTHONPATH=. $(PYTHON) packaging/man_pages.py build/man build/target/probe/fastenough-probe \
		build/target/monitor/fastenough-monitor build/target/monitor/inject/fastenough-inject \
		$(wildcard build/target/publisher/fastenough-publisher build/target/publisher/fastenough-executor)
	@for section in 1 8; do mv build/man/*.$$section build/man/man$$section; done

# What watches wake-ups in the kernel: fastenough-monitor, in build/target/monitor.
monitor:
	@setup/install monitor

setup-test:
	@setup/install test

clean:
	rm -rf build .venv report

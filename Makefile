# Two commands do everything on a fresh machine: `make run` and `make test`. Each sets up .venv first, and
# `make test` a browser and three servers.
PYTHON ?= python3
BIN := .venv/bin
INSTANCES ?= 100000
KILLS ?= 20
MINUTES ?= 30

.PHONY: setup run test lint types layers unit lowest coverage browser servers screenshots bench certify crash soak requirements clean

setup: .venv/ready

.venv/ready: requirements/development.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/development.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# The demo, until Ctrl-C; `make run ROUNDS=2000` ends by itself.
run: setup
	$(BIN)/banditrank demo $(if $(ROUNDS),--rounds $(ROUNDS))

test: lint types layers unit lowest

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# Installed outside .venv: Chromium, unless it or Chrome is on the PATH; PostgreSQL, Redis and nginx.
browser:
	tools/install_browser

servers:
	tools/install_servers

# A worker takes whole files, so that two do not compile the same formulas; an idle one takes files from the other.
unit: setup browser servers
	$(BIN)/pytest --numprocesses=auto --dist=worksteal

# Tests of undocumented parts of uvicorn with the lowest allowed version; `unit` uses the highest.
lowest: setup .venv/lowest/ready
	PYTHONPATH=.venv/lowest BANDITRANK_UVICORN=lowest $(BIN)/pytest -p no:cacheprovider --numprocesses=auto \
		tests/service/test_uvicorn_versions.py tests/service/test_bad_connections.py tests/service/test_framing.py

.venv/lowest/ready: requirements/lowest.txt .venv/ready
	rm -rf .venv/lowest
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target .venv/lowest \
		-r requirements/lowest.txt
	touch $@

# The same tests with branch coverage, which takes a third longer: tracing slows the compiler down.
coverage: setup browser servers
	$(BIN)/pytest --numprocesses=auto --dist=worksteal --cov --cov-report=term:skip-covered

# The screenshots of the demo in docs/images.
screenshots: setup browser
	$(BIN)/python tools/take_screenshots.py

bench: setup
	$(BIN)/python benchmarks/bench.py

# Search INSTANCES small instances for a wrong certificate; Ctrl-C prints the results so far.
certify: setup
	$(BIN)/python benchmarks/certify.py $(INSTANCES)

# Kill services KILLS times on SQLite, and services and servers a quarter as often on PostgreSQL and Redis,
# while clients rank and report; then check the counts. Ctrl-C prints the results so far.
crash: setup servers
	PYTHONPATH=tests $(BIN)/python -m campaigns.crashes --kills $(KILLS)

# Hold half of the service's capacity for MINUTES, and fail if memory grows; Ctrl-C prints the results so far.
soak: setup
	PYTHONPATH=tests $(BIN)/python -m campaigns.soak --minutes $(MINUTES)

# Pin what pyproject.toml asks for, with hashes and without an index address.
requirements:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-strip-extras --no-emit-index-url --upgrade --quiet --output-file requirements/development.txt

clean:
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage output dist

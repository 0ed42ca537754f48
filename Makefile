# Everything a person needs: `make help`. Needs only Python 3.11+ and make.
SHELL := /bin/sh
.DEFAULT_GOAL := help

PYTHON ?= python3
UV_VERSION := 0.13.8
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
READY := $(VENV)/.installed
LOCK_FLAGS ?= --upgrade

# Prefect must neither phone home nor write into the developer's own home.
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export UV_SYSTEM_CERTS := true
# Every module is compiled once and not in each of the hundred processes of a run, also where the
# shell forbids Python to write beside the sources.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.PHONY: help demo scenario test test-nights test-truths campaign conformance bench check fix golden golden-freeze serve stop sandbox pictures site installed release container audit lock sizes clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# A venv of the standard library, a pinned uv in it, then exactly the locked set of development.
$(READY): pyproject.toml requirements-dev.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(UV) --version 2>/dev/null | grep -q "uv $(UV_VERSION) " || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY) ## one whole night against the sandbox gateway; prints where the workbook is
	@$(BIN)/recon demo

scenario: $(READY) ## one scenario (NAME=area/name of tests/scenarios); leaves its workbook, files and what was seen in out/scenarios
	@$(BIN)/python -m tests.scenarios $(NAME)

# What looks at the code itself; and what plays nights by the hundred, months whose files and adjustments
# come late, two desks as processes, crashes, schedules and Prefect (two seconds to import): both take
# minutes of their own, and neither is left out of .ci/run.
CODE = tests/architecture tests/golden
LONG = tests/scenarios/test_nights.py tests/recon/proof/test_control_totals.py tests/recon/steps/month/test_late_files.py tests/recon/steps/month/test_waiting_adjustments.py tests/recon/cli/test_two_desks.py tests/reports/test_stated_figures.py
NIGHTS = tests/recon/steps tests/model tests/chaos tests/tasks tests/flows $(LONG)

# Of these `make test` plays few, and .ci/run as many as `make test-truths` says.
TRUTHS = tests/recon/steps/month/test_truth_of_months.py tests/recon/matching/bank/test_truth.py tests/recon/files/test_bank_fuzz.py tests/recon/files/proposing/test_proposals.py tests/recon/proof/test_night_parts.py tests/recon/proof/test_settled_parts.py tests/recon/steps/compare/test_carried.py tests/recon/matching/cash/test_truth_of_contract.py tests/recon/matching/cash/test_fees_by_month.py tests/recon/cli/test_demo_answer_key.py

# Some fifty seconds of it are waits (time-outs, servers that start): a third worker on two cores has them beside the others.
test: $(READY) ## the test suite (what looks at the code itself is in make check, hundreds of nights in make test-nights)
	@$(BIN)/pytest -n 3 --dist loadgroup --max-worker-restart=0 $(patsubst %,--ignore=%,$(CODE) $(NIGHTS))

test-nights: $(READY) ## hundreds of nights, their crashes, late months, the model of money, Prefect's flows and pages
	@$(BIN)/pytest -n 2 --dist loadgroup --max-worker-restart=0 $(NIGHTS)

test-truths: $(READY) ## months, banks, files and demos made from the truth, of which `make test` plays few (MONTHS_PLAYED, BANK_SEEDS, BANK_FUZZ, PROPOSED_SEEDS, PARTS_SEEDS, FEES_SEEDS, CONTRACT_SEEDS, DEMOS_PLAYED)
	@MONTHS_PLAYED=$${MONTHS_PLAYED:-4} BANK_SEEDS=$${BANK_SEEDS:-12} BANK_FUZZ=$${BANK_FUZZ:-150} PROPOSED_SEEDS=$${PROPOSED_SEEDS:-5} PARTS_SEEDS=$${PARTS_SEEDS:-16} FEES_SEEDS=$${FEES_SEEDS:-10} CONTRACT_SEEDS=$${CONTRACT_SEEDS:-3} DEMOS_PLAYED=$${DEMOS_PLAYED:-3} $(BIN)/pytest -n 2 --dist loadgroup --max-worker-restart=0 $(TRUTHS)

campaign: $(READY) ## what takes minutes to hours: kills, chaos, fuzz, truths in their size, Prefect, a browser (NAME=…; without it the list, tests/campaigns.toml)
	@$(BIN)/python -m tests.campaigns $(NAME)

conformance: $(READY) ## the gateway's contracts against our sandbox, or reading only against BASE_URL=… (RECON_SIGN_KEY, RECON_MERCHANT, RECON_ACCOUNT, CONFORMANCE_ORDERS)
ifdef BASE_URL
	@CONFORMANCE_BASE_URL="$(BASE_URL)" CONFORMANCE_SIGN_KEY="$$RECON_SIGN_KEY" CONFORMANCE_MERCHANT="$$RECON_MERCHANT" CONFORMANCE_ACCOUNT="$$RECON_ACCOUNT" $(BIN)/pytest tests/conformance/test_reading_contract.py -rs -p no:cacheprovider
else
	@CONFORMANCE_LIES=all $(BIN)/pytest tests/conformance tests/literal -rs
endif

bench: $(READY) ## CPU, memory and bytes: night, year, engine, reconcile, gateway, ingest or bank (NAME=…, ARGS="--help")
	@nice -n 5 $(BIN)/python benchmarks/bench_$(NAME).py $(ARGS)

check: $(READY) ## format, lint, types, floors, tidiness
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q $(CODE)

fix: $(READY) ## let ruff put right what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

golden: $(READY) ## what must not change by itself, compared with what is frozen: nights, machine files, requests, exit codes (GOLDEN="requests" for one play)
	@$(BIN)/python -m tests.golden $(GOLDEN)

golden-freeze: $(READY) ## freeze these figures anew, where a change of them is meant; look at the diff of tests/golden/frozen.toml
	@$(BIN)/python -m tests.golden --freeze $(GOLDEN)

serve: $(READY) ## Prefect's server, worker and schedules and the sandbox on this machine; prints the UI's address (PORT)
	@$(BIN)/python -m flows.serve start --port $${PORT:-4200}

stop: $(READY) ## end what `make serve` started
	@$(BIN)/python -m flows.serve stop

sandbox: $(READY) ## the sandbox gateway, until Ctrl-C
	@$(BIN)/recon sandbox

pictures: $(READY) ## what documents show of a fresh demo night, its close and its terminal, into docs/images (LibreOffice, poppler, Chromium); PREFECT=1: of Prefect's pages, as the campaign prefect-forms left them
ifdef PREFECT
	@$(BIN)/python -m tests.reports.document_pictures prefect
else
	@mkdir -p out/demo && PATH="$(abspath $(BIN)):$$PATH" recon demo --fresh >out/terminal.txt 2>&1
	@set -a; . out/demo/.env; set +a; $(BIN)/recon close 2026-11 >/dev/null 2>&1; test $$? -eq 4
	@$(BIN)/python -m tests.reports.document_pictures demo
endif

site: $(READY) ## the pages of docs as one site that needs no network, in out/site
	@$(BIN)/zensical build --strict

installed: $(READY) ## the product as operators get it: stock pip, the locked set, the wheel, its demo; the list of parts and licences in out/installed
	@PYTHON=$(PYTHON) .ci/installed

release: $(READY) ## of a clean checkout whose changelog names the version: `make installed`, built again, hashed; all of it in out/release, and the command that tags it
	@PYTHON=$(PYTHON) $(BIN)/python .ci/release.py

container: $(READY) ## the Containerfile, built on Debian's packages and played without root on a read-only file system (podman, runc, mmdebstrap; after `make installed`)
	@.ci/container

audit: $(READY) ## known defects of what is installed; a database that cannot be reached is a failure, not a pass
	@$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: ## resolve the dependencies again, hashed, no index host: what runs, and what development adds to it (LOCK_FLAGS= keeps versions where it can)
	@$(UV) $(COMPILE) $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@$(UV) $(COMPILE) $(LOCK_FLAGS) --group dev --constraints requirements.lock pyproject.toml -o requirements-dev.lock

sizes: $(READY) ## how much there is of the product and its tests, by package and in all
	@$(BIN)/python benchmarks/size_of_code.py

clean: ## remove what make made here
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

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

.PHONY: help prefect-forms prefect-postgresql troubled-nights demo test check golden golden-freeze fix serve stop killed-nights test-postgresql chaos fuzz fuzz-files conformance bench-gateway bench-journal bench-ingest sizes sandbox lock clean

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

# What looks at the code itself; and what plays nights by the hundred, months whose files and adjustments
# come late, two desks as processes, crashes, schedules, Prefect (two seconds to import) and a browser: both take
# minutes of their own, and neither is left out of .ci/run.
CODE = tests/architecture tests/golden
LONG = tests/scenarios/test_nights.py tests/recon/period/test_late_files.py tests/recon/period/test_waiting_adjustments.py tests/recon/cli/test_two_desks.py tests/reports/test_stated_figures.py
NIGHTS = tests/recon/steps tests/model tests/chaos tests/tasks tests/flows tests/browser $(LONG)

# Of these `make test` plays few, and .ci/run as many as `make test-truths` says.
TRUTHS = tests/recon/period/test_truth_of_months.py tests/recon/matching/bank/test_truth.py tests/recon/files/test_bank_fuzz.py tests/recon/files/proposing/test_proposals.py tests/recon/matching/exact/test_calm_sets.py tests/recon/proof/test_night_parts.py tests/recon/proof/test_settled_parts.py tests/recon/matching/cash/test_truth_of_fees.py tests/recon/matching/cash/test_truth_of_contract.py tests/recon/matching/cash/test_fees_by_month.py tests/recon/sandbox/pages/test_statements_of_banks.py tests/recon/cli/test_demo_answer_key.py

# Some fifty seconds of it are waits (time-outs, servers that start): a third worker on two cores has them beside the others.
test: $(READY) ## the test suite (what looks at the code itself is in make check, hundreds of nights in make test-nights)
	@$(BIN)/pytest -n 3 --dist loadgroup $(patsubst %,--ignore=%,$(CODE) $(NIGHTS))

.PHONY: test-nights
test-nights: $(READY) ## hundreds of nights, their crashes, late months, the model of money, Prefect's flows and pages
	@$(BIN)/pytest -n 2 --dist loadgroup $(NIGHTS)

.PHONY: scenario
scenario: $(READY) ## one scenario (NAME=area/name of tests/scenarios); leaves its workbook, files and what was seen in out/scenarios
	@$(BIN)/python -m tests.scenarios $(NAME)

.PHONY: nights-in-parts
nights-in-parts: $(READY) ## every night of the steps' tests compared whole and in parts of a few orders: the same files, totals and digests
	@NIGHTS_IN_PARTS=1 SETTLED_NIGHTS=1 $(BIN)/pytest -n 2 --dist loadgroup tests/recon/steps

.PHONY: test-truths
test-truths: $(READY) ## months, banks, files and demos made from the truth, of which `make test` plays few (MONTHS_PLAYED, BANK_SEEDS, BOOKS_SEEDS, BANK_FUZZ, PROPOSED_SEEDS, CALM_SEEDS, PARTS_SEEDS, FEES_SEEDS, CONTRACT_SEEDS, POPULATIONS_PLAYED, DEMOS_PLAYED)
	@MONTHS_PLAYED=$${MONTHS_PLAYED:-4} BANK_SEEDS=$${BANK_SEEDS:-12} BOOKS_SEEDS=$${BOOKS_SEEDS:-20} BANK_FUZZ=$${BANK_FUZZ:-150} PROPOSED_SEEDS=$${PROPOSED_SEEDS:-5} CALM_SEEDS=$${CALM_SEEDS:-6} PARTS_SEEDS=$${PARTS_SEEDS:-16} FEES_SEEDS=$${FEES_SEEDS:-10} CONTRACT_SEEDS=$${CONTRACT_SEEDS:-3} POPULATIONS_PLAYED=$${POPULATIONS_PLAYED:-3} DEMOS_PLAYED=$${DEMOS_PLAYED:-2} $(BIN)/pytest -n 2 --dist loadgroup $(TRUTHS)

check: $(READY) ## format, lint, types, floors, tidiness
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q $(CODE)

golden: $(READY) ## what must not change by itself, compared with what is frozen: nights, workbook cells, machine files, requests, help, exit codes (GOLDEN="help" for one play)
	@$(BIN)/python -m tests.golden $(GOLDEN)

golden-freeze: $(READY) ## freeze these figures anew, where a change of them is meant; look at the diff of tests/golden/frozen.toml
	@$(BIN)/python -m tests.golden --freeze $(GOLDEN)

fix: $(READY) ## let ruff put right what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

serve: $(READY) ## Prefect's server, worker and schedules and the sandbox on this machine; prints the UI's address (PORT)
	@$(BIN)/python -m flows.serve start --port $${PORT:-4200}

stop: $(READY) ## end what `make serve` started
	@$(BIN)/python -m flows.serve stop

.PHONY: connect
connect: $(READY) ## docs/CONNECT.md as somebody new would do it, command by command, up to a first workbook; prints the time
	@CONNECT=1 $(BIN)/pytest -q -s -n 0 --timeout 1200 tests/connect

killed-nights: $(READY) ## nights killed at random moments and started again (KILLED_NIGHTS=100 for more)
	@KILLED_NIGHTS=$${KILLED_NIGHTS:-10} $(BIN)/pytest tests/recon/steps/test_killed_nights.py

test-postgresql: $(READY) ## every test of a night on PostgreSQL, by a login with least rights
	@STEPS_ON_POSTGRESQL=1 $(BIN)/pytest -n 2 --dist loadgroup tests/recon/steps

SETTLED = tests/recon/steps/test_settled_nights.py tests/recon/steps/test_settled_money.py tests/recon/steps/test_settled_doubts.py tests/recon/steps/files/test_settlement_files.py

settled-nights: $(READY) ## nights over the sandbox's own files, SQLite and PostgreSQL: each planted settlement case is found, the true files close it and end doubts
	@SETTLED_NIGHTS=1 $(BIN)/pytest -n 0 $(SETTLED)
	@SETTLED_NIGHTS=1 STEPS_ON_POSTGRESQL=1 $(BIN)/pytest -n 0 $(SETTLED)

troubled-nights: $(READY) ## real nights while Prefect cancels, pauses, retries, crashes or goes away around them
	@CHAOS=1 $(BIN)/pytest -n 1 --dist loadgroup tests/flows/test_troubled_nights.py

prefect-postgresql: $(READY) ## a night while Prefect keeps its own state on Debian's PostgreSQL (package postgresql)
	@PREFECT_ON=postgresql $(BIN)/pytest -n 0 tests/flows/test_prefect_on_postgresql.py

.PHONY: killed-worker
killed-worker: $(READY) ## Prefect's worker killed in the middle of a batch, its form started again: the seconds until the night is held
	@KILLED_WORKER=1 $(BIN)/pytest -n 0 tests/flows/test_killed_worker.py

.PHONY: process-walk
process-walk: $(READY) ## what `make serve` starts, a desk and a night, each secret a canary: variables and command line of every process, every file that Prefect keeps
	@PROCESS_WALK=1 $(BIN)/pytest -n 0 tests/flows/test_process_secrets.py

prefect-forms: $(READY) ## Prefect's pages in a real browser: a night, refunds approved by two people, its workbook found; pictures in out/pages
	@PREFECT_FORMS=1 $(BIN)/pytest -n 0 --basetemp=/tmp/recon-pages tests/browser/test_prefect_forms.py

conformance: $(READY) ## the gateway's contracts against our sandbox, or reading only against BASE_URL=… (RECON_SIGN_KEY, RECON_MERCHANT, RECON_ACCOUNT, CONFORMANCE_ORDERS)
ifdef BASE_URL
	@CONFORMANCE_BASE_URL="$(BASE_URL)" CONFORMANCE_SIGN_KEY="$$RECON_SIGN_KEY" CONFORMANCE_MERCHANT="$$RECON_MERCHANT" CONFORMANCE_ACCOUNT="$$RECON_ACCOUNT" $(BIN)/pytest tests/conformance/test_reading_contract.py -rs -p no:cacheprovider
else
	@CONFORMANCE_LIES=all $(BIN)/pytest tests/conformance tests/literal -rs
endif

bench-gateway: $(READY) ## CPU of a query of 100 orders beside aiohttp + orjson, and orders the sandbox answers per second
	@$(BIN)/python benchmarks/bench_gateway.py

bench-journal: $(READY) ## 1,000 captures with the journal and without, the gateway answering after 50 ms
	@$(BIN)/python benchmarks/bench_journal.py

.PHONY: bench-fees
bench-fees: $(READY) ## CPU of pricing a million settlement lines under each of 14 tariffs
	@nice -n 5 $(BIN)/python benchmarks/bench_fees.py

.PHONY: bench-month
bench-month: $(READY) ## CPU and memory of stating and proving a month of MONTH_ORDERS orders a day (1,500), in pandas and in SQL; MONTH_KEPT: a folder in which it stays
	@nice -n 5 $(BIN)/python benchmarks/bench_month.py --orders $${MONTH_ORDERS:-1500} $${MONTH_KEPT:+--keep $$MONTH_KEPT}

.PHONY: bench-what-if
bench-what-if: $(READY) ## CPU of judging WHAT_IF_NIGHTS (30) nights of WHAT_IF_ORDERS (20,000) payments again under other rules
	@nice -n 5 $(BIN)/python benchmarks/bench_what_if.py --nights $${WHAT_IF_NIGHTS:-30} --orders $${WHAT_IF_ORDERS:-20000}

.PHONY: bench-night
bench-night: $(READY) ## CPU of every stage of a night of NIGHT_ORDERS payments, a million without it
	@nice -n 5 $(BIN)/python benchmarks/bench_night.py --orders $${NIGHT_ORDERS:-1000000}

.PHONY: bench-year
bench-year: $(READY) ## bytes of YEAR_NIGHTS nights of YEAR_ORDERS orders a day over a full window (9 and 300), each rebuilt
	@nice -n 5 $(BIN)/python benchmarks/bench_year.py --nights $${YEAR_NIGHTS:-9} --orders $${YEAR_ORDERS:-300}

.PHONY: bench-recovery
bench-recovery: $(READY) ## a night killed after half of its 1,000 captures and started again, beside half a night
	@$(BIN)/python benchmarks/bench_recovery.py

.PHONY: pictures
pictures: $(READY) ## what documents show of a fresh demo night, its close and its terminal, into docs/images (LibreOffice, poppler, Chromium)
	@mkdir -p out/demo && $(BIN)/recon demo --fresh >out/terminal.txt 2>&1
	@set -a; . out/demo/env; set +a; $(BIN)/recon close 2026-11 >/dev/null 2>&1; test $$? -eq 4
	@$(BIN)/python -m tests.reports.document_pictures demo

.PHONY: pictures-prefect
pictures-prefect: prefect-forms ## what documents show of Prefect's pages, into docs/images
	@$(BIN)/python -m tests.reports.document_pictures prefect

fuzz: $(READY) ## every reader of the gateway's replies against 24,000 bent ones (REPLY_FUZZ_CASES for more)
	@REPLY_FUZZ_CASES=$${REPLY_FUZZ_CASES:-24000} $(BIN)/pytest tests/recon/gateway_client/test_reply_fuzz.py

fuzz-files: $(READY) ## bent files of every kind and format, in the reading process, against independent strict readers (FILE_FUZZ_CASES, 100,000 without it; FILE_FUZZ_FROM)
	@FILE_FUZZ_CASES=$${FILE_FUZZ_CASES:-100000} $(BIN)/pytest -n 2 -rP --timeout 7200 tests/recon/files/test_file_fuzz.py tests/recon/files/test_kind_fuzz.py

.PHONY: hostile-nights
hostile-nights: $(READY) ## whole live nights among bent files of every kind: only what a strict reader reads in them moves (HOSTILE_NIGHTS, 200 without it; HOSTILE_FROM)
	@HOSTILE_NIGHTS=$${HOSTILE_NIGHTS:-200} $(BIN)/pytest -n 0 -rP --timeout 7200 tests/recon/steps/test_hostile_nights.py

.PHONY: forged-rows
forged-rows: $(READY) ## rows forged, changed or deleted past the code: each is found before money moves (FORGED_ROWS, 1,000 without it)
	@FORGED_ROWS=$${FORGED_ROWS:-1000} $(BIN)/pytest -n 0 --timeout 3600 tests/recon/steps/test_forged_rows.py

.PHONY: bank-truth
bank-truth: $(READY) ## months of a bank made from the truth, and changed statements against a second reader (BANK_SEEDS and BOOKS_SEEDS, 250; BANK_FUZZ, 20,000; BANK_FUZZ_FROM)
	@BANK_SEEDS=$${BANK_SEEDS:-250} BOOKS_SEEDS=$${BOOKS_SEEDS:-250} $(BIN)/pytest -n 2 --timeout 3600 tests/recon/matching/bank/test_truth.py
	@BANK_FUZZ=$${BANK_FUZZ:-20000} $(BIN)/pytest -n 0 -rP --timeout 7200 tests/recon/files/test_bank_fuzz.py

.PHONY: fees-truth
fees-truth: $(READY) ## months of fees, reserves and held-back money made from the truth, every break known beforehand (FEES_SEEDS, 250)
	@FEES_SEEDS=$${FEES_SEEDS:-250} $(BIN)/pytest -n 2 --timeout 3600 tests/recon/matching/cash/test_truth_of_fees.py

.PHONY: months-truth
months-truth: $(READY) ## two months for which files come late, in any order, one closed before they came (MONTHS_ORDERS, 200 orders a day)
	@MONTHS_ORDERS=$${MONTHS_ORDERS:-200} $(BIN)/pytest -n 0 --timeout 7200 tests/recon/period/test_late_files.py

chaos: $(READY) ## the protocol under every crash and fault: all mutants, the whole grid, thousands of schedules (CHAOS_SCHEDULES, CHAOS_EXAMPLES, CHAOS_STEPS, CHAOS_KILLS, CHAOS_POSTGRESQL, CHAOS_STARTS, CHAOS_NIGHTS, CHAOS_SIGNED)
	@CHAOS=1 CHAOS_SCHEDULES=$${CHAOS_SCHEDULES:-20000} CHAOS_EXAMPLES=$${CHAOS_EXAMPLES:-2000} CHAOS_STEPS=$${CHAOS_STEPS:-50} CHAOS_KILLS=$${CHAOS_KILLS:-250} CHAOS_POSTGRESQL=$${CHAOS_POSTGRESQL:-50} CHAOS_STARTS=$${CHAOS_STARTS:-300} CHAOS_NIGHTS=$${CHAOS_NIGHTS:-365} CHAOS_SIGNED=$${CHAOS_SIGNED:-365} $(BIN)/pytest -n 2 --dist loadgroup tests/model tests/chaos tests/recon/steps/ground/test_ending.py

bench-ingest: $(READY) ## order files beside polars and openpyxl, their rows beside raw SQLite and PostgreSQL (BENCH_ROWS, a million without it)
	@$(BIN)/python benchmarks/bench_ingest.py --rows $${BENCH_ROWS:-1000000}

.PHONY: bench-files
bench-files: $(READY) ## CPU of storing one more small order file when many came before it (BENCH_FILES, 800)
	@nice -n 5 $(BIN)/python benchmarks/bench_files.py --files $${BENCH_FILES:-800}

sizes: $(READY) ## lines of modules and functions: median, p90, largest
	@$(BIN)/python benchmarks/size_of_code.py

sandbox: $(READY) ## the sandbox gateway, until Ctrl-C
	@$(BIN)/recon sandbox

.PHONY: bench-bank
bench-bank: $(READY) ## CPU and memory of checking a statement of 500,000 entries, as camt.053, MT940 and CSV (BANK_ENTRIES)
	@nice -n 5 $(BIN)/python benchmarks/bench_bank.py --entries $${BANK_ENTRIES:-500000}

.PHONY: bench-reconcile
bench-reconcile: $(READY) ## CPU of a reconciliation of 1,000,000 planted orders, in frames and in CSV files, beside DuckDB, datacompy and fastrecon (RECONCILE_SIZES)
	@nice -n 5 $(BIN)/python benchmarks/bench_reconcile.py --sizes $${RECONCILE_SIZES:-100000 1000000}

.PHONY: bench-engine
bench-engine: $(READY) ## CPU and calls of comparing one order, of T14, of a night of three orders, and CPU of 200,000 orders (ENGINE_ORDERS)
	@nice -n 5 $(BIN)/python benchmarks/bench_engine.py --many $${ENGINE_ORDERS:-200000}

.PHONY: bench-workbook
bench-workbook: $(READY) ## CPU and memory of writing 200,000 matches beside XlsxWriter and openpyxl, of a night, of an import (WORKBOOK_ROWS, WORKBOOK_LARGE)
	@nice -n 5 $(BIN)/python benchmarks/bench_workbook.py

.PHONY: installed
installed: $(READY) ## the product as operators get it: stock pip, the locked set, the wheel, its demo; the list of parts and licences in out/installed
	@PYTHON=$(PYTHON) .ci/installed

.PHONY: release
release: $(READY) ## of a clean checkout whose changelog names the version: `make installed`, built again, hashed; all of it in out/release, and the command that tags it
	@PYTHON=$(PYTHON) $(BIN)/python .ci/release.py

.PHONY: container
container: $(READY) ## the Containerfile, built on Debian's packages and played without root on a read-only file system (podman, runc, mmdebstrap; after `make installed`)
	@.ci/container

.PHONY: audit
audit: $(READY) ## known defects of what is installed; a database that cannot be reached is a failure, not a pass
	@$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: ## resolve the dependencies again, hashed, no index host: what runs, and what development adds to it (LOCK_FLAGS= keeps versions where it can)
	@$(UV) $(COMPILE) $(LOCK_FLAGS) pyproject.toml -o requirements.lock
	@$(UV) $(COMPILE) $(LOCK_FLAGS) --group dev --constraints requirements.lock pyproject.toml -o requirements-dev.lock

clean: ## remove what make made here
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

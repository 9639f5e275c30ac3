# Everything runs from a bare checkout: Python >= 3.11, make and pip suffice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Set in some containers: each process of the tests would compile every file anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint bench nightly browser federated docs clean help

help:            ## list the targets
	@grep -E '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/'

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@$(BIN)/python -m compileall -q src  # as pip does for what it copies: each command starts a third of a second sooner
	@touch $(STAMP)

demo: $(STAMP)   ## one study on a real medical table, from plan to report
	$(BIN)/sfumato demo

test: $(STAMP)   ## every test that must be green before a change lands
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(STAMP)   ## ruff and pyright
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	$(BIN)/ruff check src tests papers benchmarks
	$(BIN)/ruff format --check src tests papers benchmarks
	$(BIN)/pyright

bench: $(STAMP)  ## side by side with peers; prints ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

# axe-core looks for what keeps people from reading a page; it is a tool of the tests, kept outside the checkout.
AXE    ?= $(HOME)/.cache/sfumato-axe

browser: $(STAMP) ## the pages, in a real Chromium
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,browser]'
	@command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix $(AXE) axe-core@4 || echo "no npm: the pages are not read by axe-core"
	SFUMATO_AXE=$(AXE) $(BIN)/python -m pytest -q -m browser

# Flower's simulation leaves its handles of /dev/null to the end of the process, where a warning would be an error.
FLOWER := -W "ignore:unclosed file <_io.FileIO name='/dev/null':ResourceWarning"

federated:       ## rounds over Flower, in an environment of its own
	$(PYTHON) -m venv $(VENV)-federated
	$(VENV)-federated/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test,federated]'
	$(VENV)-federated/bin/python -m pytest -q -m federated $(FLOWER) --timeout=900 --durations=5 $$(grep -rl --include='test_*.py' 'mark[.]federated' tests)

nightly: $(STAMP) browser federated ## the long checks, and those that need Chromium or Flower
	$(BIN)/python -m pytest -n 2 --dist loadfile -q -m slow --timeout=3600

docs: $(STAMP)   ## the site, in site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:           ## remove the environment and caches
	rm -rf $(VENV) $(VENV)-federated .pytest_cache .ruff_cache .hypothesis

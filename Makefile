# `make help` lists the targets. PROFILE, CLUSTER and STOP_AFTER choose what is run, ARGS is passed on unchanged.
PROFILE ?=
CLUSTER ?= ostest
STOP_AFTER ?=
ARGS ?=
export CLUSTER

AGENTLAB := bin/agentlab
STAGES := prepare configure image boot wait validate
# Each playbook is a verb, but for those that are not, or have a rule of their own below.
OTHER := setup deploy inventory swarm
PLAYBOOKS := $(subst _,-,$(basename $(notdir $(sort $(wildcard playbooks/*.yml)))))
VERBS := plan $(STAGES) $(filter-out plan $(STAGES) $(OTHER),$(PLAYBOOKS))
VENV := $(or $(AGENTLAB_VENV),$(CURDIR)/.venv)
BIN := $(VENV)/bin
TESTS := tests/lint tests/unit tests/conformance tests/integration tests/molecule tests/e2e
PYTEST := PATH=$(BIN):$$PATH $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help run setup deploy shell $(VERBS) environment lock test slow test-all e2e lint unit coverage benchmark generate matrix docs build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z].*:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  each lab verb is also a target: $(VERBS) shell"
	@echo "  PROFILE=   path, name in config_examples/, or dev-scripts scenario (default sno_ipv4)"
	@echo "  CLUSTER=   name of the cluster (default ostest)      STOP_AFTER=  one of $(STAGES)"
	@echo "  ARGS=      more arguments, such as ARGS='--check --diff'"

run: setup deploy ## set up this host and install a cluster

setup: ## install the packages that a lab needs
	@$(AGENTLAB) setup $(ARGS)

deploy: ## install a cluster
	@$(AGENTLAB) deploy $(PROFILE) $(if $(STOP_AFTER),--stop-after $(STOP_AFTER)) $(ARGS)

$(VERBS):
	@$(AGENTLAB) $@ $(PROFILE) $(ARGS)

shell: ## open a shell inside the cluster's sandbox
	@$(AGENTLAB) shell

environment: ## create the virtual environment for the tests
	@$(AGENTLAB) setup -e '{"agentlab_setup_tests": true}'
	@cmp -s requirements-test.lock $(VENV)/agentlab-requirements-test.lock || { \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation -r requirements-test.lock && \
		cp requirements-test.lock $(VENV)/agentlab-requirements-test.lock; }

lock: environment ## lock the newest versions that the requirements allow, with hashes
	@for name in -test "" -build -hypervisor -ironic -ironic-agent; do \
		$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
			--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
			$$(test "$$name" = -test || echo "--constraints requirements-test.lock") \
			--output-file "requirements$$name.lock" "requirements$$name.txt" || exit; \
	done

test: environment ## run the tests of every change, with a cluster and a fault in virtual machines
	@$(PYTEST) --numprocesses auto -m "not slow and not long" $(TESTS)

slow: environment ## run what CI runs at every change after `make test`
	@$(PYTEST) --numprocesses auto -m "slow and not long" $(TESTS)

test-all: environment ## run all tests, including the long ones
	@AGENTLAB_SCHEMATHESIS_SECONDS=60 $(PYTEST) --numprocesses auto $(TESTS)

e2e: environment ## run the jobs of ci/jobs.yml that JOBS="..." names
	@AGENTLAB_E2E="$(JOBS)" $(PYTEST) tests/e2e/test_deploy.py tests/e2e/test_faults.py

generate: environment ## write what is made of types and tables: schemas, references, the roles' READMEs
	@$(BIN)/python ci/generate.py
	@$(BIN)/python ci/role_readmes.py

matrix: environment ## write docs/support.md and docs/fields.md from the records of e2e jobs
	@$(BIN)/python ci/results.py matrix

lint: environment ## check the sources: ruff, mypy, ansible-lint, shellcheck, ansible-test sanity, documentation, archive
	@$(PYTEST) --numprocesses auto tests/lint

unit: environment ## unit tests
	@$(PYTEST) --numprocesses auto tests/unit

coverage: environment ## unit tests, and which lines and branches of plugins and payload they run
	@$(PYTEST) --numprocesses auto --cov --cov-report=term tests/unit

benchmark: environment ## measure
	@$(PYTEST) -s tests/benchmark

docs: environment ## build the documentation site in build/docs/html
	@rm -rf build/docs && mkdir -p build/docs/source/reference
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t build/docs/source
	@PATH=$(BIN):$$PATH $(BIN)/antsibull-docs collection --use-current --squash-hierarchy --dest-dir build/docs/source/reference agentlab.ocp
	@$(BIN)/sphinx-build -q -W --keep-going -b html -c ci/site build/docs/source build/docs/html
	@echo build/docs/html/ci/site/index.html

build: environment ## build the collection's archive in build/
	@mkdir -p build
	@$(BIN)/ansible-galaxy collection build --force --output-path build

clean: ## remove output of tests and build
	rm -rf build artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*

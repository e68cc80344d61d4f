# The recipes' names; the work is in cargo and hack/.
.PHONY: build demo test test-az test-monitoring test-image e2e check fmt generate bench image fuzz

CARGO ?= cargo

build: ## everything, as `demo` and the tests use it
	$(CARGO) build --locked --workspace

test: ## every test: units, simulator, end to end; a line per program as it ends, E2E_PATIENCE=3 on a slow machine
	hack/test

test-az: ## the simulated Azure by the Azure CLI; not part of `test`, because the CLI is large and slow
	e2e/clients/az/life

# Few at a time: the second build, which goes on beside the others, takes most of the machine. Command-line variables
# are in the environment of the recipe.
test-image: ## the images: what is in them, that they can be built again, clusters' lives on them, and as the chart's Pods on a node; some 20 minutes at first: IMAGES as for `image`
	RUST_TEST_THREADS=2 hack/test image node

# They wait more than they work.
test-monitoring: ## metrics, alerts and dashboard by a real Prometheus; not part of `test`, because that is fetched
	hack/test monitoring

e2e: ## the scenarios on a cluster and an Azure of your own, docs/e2e.md: E2E_KUBECONFIG=… E2E_CONTEXT=… E2E_AZURE=env …, DRY_RUN=1, CLEAN=PREFIX
	@$(CARGO) build --quiet --locked --release --workspace --bins
	@$${CARGO_TARGET_DIR:-target}/release/on-cluster $(if $(DRY_RUN),--dry-run) $(if $(CLEAN),--clean $(CLEAN))

check: ## format, lints, documentation, licences and sources, generated files, the table of compatibility, scripts and workflows, links and RUNBOOK.md
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- --deny warnings
	# Those that `make test` leaves out are not among all targets.
	$(CARGO) clippy --locked --workspace --test image --test monitoring --test node -- --deny warnings
	# A workspace of its own, with a lock file of its own.
	$(CARGO) clippy --locked --manifest-path fuzz/Cargo.toml --workspace --target-dir $${CARGO_TARGET_DIR:-target} \
		-- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items
	hack/cargo-deny --locked --workspace check bans licenses sources
	hack/verify-generated
	hack/verify-compatibility
	hack/verify-scripts
	$(CARGO) test --quiet --locked --workspace --test docs

fmt:
	$(CARGO) fmt --all

generate: ## the generated files, in place
	hack/generate

demo: ## one cluster's life on the real executable: PRESET=fast|recorded, VARIANT=router|oauth|aws|capz, KEEP=1
	hack/testenv/build >/dev/null
	$(CARGO) build --quiet --locked --release --workspace --bins
	@$${CARGO_TARGET_DIR:-target}/release/demo

bench: ## the figures, on the executable that ships: PRESET=recorded|fast ONLY=life|standby|objects|crowd|rest|restart|hundreds|tenant|armsim|awssim|aws|aws-crowd|capz PROGRAM=path
	$(CARGO) run --quiet --locked --release --package e2e --bin bench

image: ## the container images with their SBOMs, in target/image: IMAGES="hyperlink-amd64 armsim-arm64 …", of hyperlink, armsim and awssim
	hack/image/build $(IMAGES)

fuzz: ## what Hyperlink reads, and the simulated Azure, with input that nobody wrote: MINUTES=10 in all
	hack/fuzz

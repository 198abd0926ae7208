# congestlab: `make demo` shows it, `make test` proves it.
.POSIX:
.PHONY: help build release deb demo test relations fuzz-scenarios setup lint docs bench bench-peers papers bench-linux geo check-bare check-packages check-live check-clean check-python \
	wheel check-wheel sbom page check-page bpf fuzz install clean

help:
	@echo 'make demo     build, then XCP and CUBIC on one bottleneck: a table, demo.png, demo.svg'
	@echo 'make release  the command with a profile of training runs, faster (minutes)'
	@echo 'make deb      the command as a package for Debian and Ubuntu, with man pages, completions and systemd units'
	@echo 'make test     every test; installs what is missing when allowed, else skips and says why'
	@echo 'make relations  many random scenarios and changed copies whose results are known, in the release build (TIMES=100; a quarter of an hour)'
	@echo 'make fuzz-scenarios  random scenarios, ordinary and extreme, on both engines with overflow checks (SCENARIOS=10000, SEED=0; half an hour)'
	@echo 'make setup    install the system packages that some tests want (says which, then does it)'
	@echo 'make lint     formatting and lints'
	@echo 'make docs     the book and the documentation of the crates, in target/docs; checks every link'
	@echo 'make bench    what the simulator costs, written into docs/performance.md (minutes; idle machine)'
	@echo 'make bench-peers  what ns-2, ns-3 and (HTSIM=FOLDER: its sources) htsim cost on the same dumbbells (an hour; idle machine)'
	@echo 'make check-bare   make demo and make test on bare Debian 12 and 13 (root; hours)'
	@echo 'make check-packages  every package installed on a bare Debian, and the demo there (root, a network; half an hour)'
	@echo 'make check-live   real TCP in namespaces against what it must do (root; half an hour)'
	@echo 'make check-clean  kill labs and links at random moments and look for what is left (root; minutes)'
	@echo 'make check-python  the Python package: its module, documents and notebooks (minutes; wants a network)'
	@echo 'make wheel    the wheel of the Python package, with the command in it (many minutes; wants a network)'
	@echo 'make check-wheel  the wheel in an empty environment, and what auditwheel says of it'
	@echo 'make sbom     what the command is made of, as a bill of materials (CycloneDX), in target/congestlab.cdx.json'
	@echo 'make page     the site: the book, the papers, the playground, in target/site (minutes; wants a network)'
	@echo 'make check-page  every scenario in the playground against the command, and the page in Chromium (minutes)'
	@echo 'make bench-linux  what the kernel programs and the user-space link cost (root; idle machine)'
	@echo 'make geo      splitting gateways beside TCP over a satellite link (root; a quarter of an hour)'
	@echo 'make papers   every figure and claim of the papers against what is written down (minutes)'
	@echo 'make bpf      build the BPF objects that the command embeds'
	@echo 'make fuzz     fuzz the parsers and the receiver: make fuzz SECONDS=300'
	@echo 'make install  the congestlab command into the folder of cargo install'

SECONDS = 60

# What runs on real packets is left out where it can not be built: tools/features says so.
build:
	features=$$(tools/features) && cargo build --release --locked --package congestlab $$features

release:
	tools/release

deb: build
	tools/deb

demo:
	features=$$(tools/features) && cargo run --release --locked --package congestlab $$features -- demo

test:
	tools/test

# Each relation draws every sender law so many times.
TIMES = 100

relations:
	CONGESTLAB_RELATIONS=$(TIMES) cargo test --release --locked --package congestlab-scenario --test relations

# With the checks of the test build, which a release build leaves out.
SCENARIOS = 10000
SEED = 0

fuzz-scenarios:
	CONGESTLAB_SCENARIOS=$(SCENARIOS) CONGESTLAB_SEED=$(SEED) \
		cargo test --locked --package congestlab-scenario --test relations -- wild --nocapture

setup:
	tools/setup

lint:
	cargo fmt --all --check
	rooms=$$(tools/features --workspace) && cargo clippy --workspace $$rooms --all-targets --locked -- -D warnings
	cargo clippy --package congestlab --no-default-features --features outside --all-targets --locked -- -D warnings

docs:
	tools/docs

bench: release
	CONGESTLAB=target/profiled/release/congestlab tools/bench --write

bench-peers: release
	HTSIM='$(HTSIM)' CONGESTLAB=target/profiled/release/congestlab tools/bench --write ns-2 htsim ns-3

bench-linux: build
	tools/bench-linux

geo: build
	tools/bench-linux geo

papers: build
	for paper in papers/*/; do \
		key=$$(basename "$$paper"); \
		target/release/congestlab papers report "$$key" --papers papers --check || exit; \
		target/release/congestlab papers run "$$key" --papers papers --quiet >/dev/null || exit; \
		target/python/bin/python3 tools/verdicts "papers/$$key" "papers-out/$$key" || exit; \
	done

check-bare:
	tools/check-bare

check-packages:
	tools/check-packages

check-live: build
	tools/check-live

check-clean: build
	tools/check-clean

check-python:
	tools/test-python

wheel:
	tools/wheel

check-wheel:
	tools/test-python --wheel target/wheels/congestlab-*.whl

sbom:
	mkdir -p target
	tools/sbom >target/congestlab.cdx.json

page:
	tools/page

check-page:
	tools/check-page

fuzz:
	fuzz/run $(SECONDS)

# The stream of operations is for tests alone.
bpf:
	HEADERS=write crates/linux/bpf/build.sh target/bpf
	rm target/bpf/stream.bpf.o target/bpf/stream-xcpr.bpf.o target/bpf/stream-police.bpf.o target/bpf/stream-percpu.bpf.o
	cp target/bpf/*.bpf.o target/bpf/tools.txt target/bpf/routers.rs target/bpf/queues.rs crates/linux/bpf/objects

install:
	features=$$(tools/features) && cargo install --locked --path crates/cli $$features

clean:
	cargo clean

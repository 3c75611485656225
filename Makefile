# Builds, tries, tests and checks the plugin. `make help` lists what there is.

CARGO ?= cargo
TARGET_DIR ?= $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET_DIR)/release
# Cargo decides what is out of date: its targets are never up to date for make.
.PHONY: build demo test test-rust test-e2e screenshots bench fuzz soak doc pictures lint fmt tools clean help

ifeq ($(shell uname -s),Darwin)
BUILT_LIBRARY := $(RELEASE)/libcursor_agent.dylib
else
BUILT_LIBRARY := $(RELEASE)/libcursor_agent.so
endif

# Copies FILE to NAME in lib/ unless it is there already: beside it first, then renamed over it, because a Neovim that
# runs may have the old one loaded.
define install_file
@cmp -s $(1) lib/$(2) || { cp $(1) lib/.$(2).new && mv -f lib/.$(2).new lib/$(2); }
endef

build: ## build the library and the companion programs into lib/
	$(CARGO) build --locked --release --target-dir $(TARGET_DIR) -p cursor-agent-nvim -p tools -p adapter -p cloud -p cloud-mcp -p connect
	@mkdir -p lib
	$(call install_file,$(BUILT_LIBRARY),cursor_agent.so)
	$(call install_file,$(RELEASE)/cursor-agent-demo,cursor-agent-demo)
	$(call install_file,$(RELEASE)/cursor-agent-acp,cursor-agent-acp)
	$(call install_file,$(RELEASE)/cursor-agent-cloud,cursor-agent-cloud)
	$(call install_file,$(RELEASE)/cursor-agent-mcp,cursor-agent-mcp)
	$(call install_file,$(RELEASE)/cursor-agent-connect,cursor-agent-connect)
	@scripts/source-id >lib/built-from

demo: build ## open the chat on the demo agent; without a terminal, play one turn and print it
	@scripts/demo

test: build ## run all tests, on the oldest and the newest Neovim; NVIM=path for another one
	@scripts/test all

test-rust: ## run the Rust tests
	@scripts/test rust

test-e2e: build ## run the end-to-end cases; CASE=text for those whose name contains it, NVIM=path
	@scripts/test e2e "$(CASE)"

screenshots: build ## update the reference screenshots; CASE=text, then read the diff
	@UPDATE_SCREENSHOTS=1 NVIM="$$(scripts/nvims newest)" scripts/test e2e "$(CASE)"
	@UPDATE_SCREENSHOTS=version scripts/test e2e "$(CASE)"

bench: build ## measure how long the chat blocks the editor, compared with a plain client; CASE=text, NVIM=path
	@scripts/bench "$(CASE)"

fuzz: build ## run each fuzz target for a minute; CASE=text for some, FUZZ_SECONDS=N
	@scripts/fuzz "$(CASE)"

soak: build ## run ten chats at once for half an hour; nothing may grow; SOAK_MINUTES=N, NVIM=path
	@scripts/soak

doc: build ## regenerate doc/cursor-agent.txt from scripts/help.txt and the code
	@"$$(scripts/nvims any)" --clean -l scripts/help.lua
	@UPDATE=1 $(CARGO) test --quiet --locked -p engine --lib contract >/dev/null
	@UPDATE=1 $(CARGO) test --quiet --locked -p cursor-agent-nvim --no-default-features --lib contract >/dev/null

pictures: build ## take the README's pictures in a real terminal; installs xvfb, xterm and imagemagick with apt if they are missing
	@scripts/pictures

lint: build tools ## check formatting and lints, Rust and Lua
	@scripts/lint

fmt: tools ## format Rust and Lua
	$(CARGO) fmt --all
	"$$(scripts/get-tools)/stylua" $(wildcard build.lua repro.lua lua plugin ftplugin tests scripts)

tools: ## install the linters into the cache
	@scripts/get-tools >/dev/null

clean: ## remove build output (not the cache)
	rm -rf lib
	$(CARGO) clean --target-dir $(TARGET_DIR)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

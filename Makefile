# `make help` lists the targets. Each of them runs from a clean clone.

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
# systemd's folder for user units; with PREFIX=$HOME/.local use $HOME/.config/systemd/user.
UNITDIR ?= $(PREFIX)/lib/systemd/user
# -disable-concrete-type-metadata-mangled-name-accessors builds type metadata from its parts instead of by name, because a lookup by name
# scans all conformances of the program. A compiler without the option refuses it; it may be left out. --no-export-dynamic omits the table
# of symbols for libraries loaded at run time; there are none (Docs/Decisions/0027-optimisations-pay-rent.md). -function-sections
# and -internalize-at-link let the linker remove unused functions. -Osize meets the bounds of Benchmarks. lld comes with the toolchain.
RELEASE = --configuration release --static-swift-stdlib -Xlinker --no-export-dynamic \
	-Xswiftc -Xfrontend -Xswiftc -disable-concrete-type-metadata-mangled-name-accessors \
	-Xswiftc -Xfrontend -Xswiftc -function-sections -Xswiftc -Xfrontend -Xswiftc -internalize-at-link \
	-Xswiftc -Osize -Xswiftc -use-ld=lld -Xlinker --icf=safe
# Packed relative relocations take almost no space. glibc supports them since 2.36 (Debian 12).
GLIBC := $(lastword $(shell getconf GNU_LIBC_VERSION 2>/dev/null))
ifneq ($(GLIBC),)
ifeq ($(shell printf '2.36\n%s\n' "$(GLIBC)" | sort --version-sort --check=quiet && echo new),new)
RELEASE += -Xlinker -z -Xlinker pack-relative-relocs
endif
endif
# The inputs of swift-format that exist.
FORMATTED := $(wildcard Package.swift Sources Tests Benchmarks Fuzz Examples)

.DEFAULT_GOAL := help
.PHONY: help setup build release demo demo-away test test-long test-browser fuzz bench lint format man deb repo install uninstall clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## Install missing packages (apt)
	@Scripts/setup

build: setup  ## Build hexlistd and hexlist for debugging into .build/debug
	$(SWIFT) build

release: setup  ## Build them for use into .build/release
	$(SWIFT) build $(RELEASE) --product hexlistd
	$(SWIFT) build $(RELEASE) --product hexlist

demo: setup  ## Two machines find each other and one sends a hex
	$(SWIFT) build --product hexlistd
	$(SWIFT) build --product hexlist
	@Scripts/demo

demo-away: setup  ## Two machines that are never on together exchange a hex
	$(SWIFT) build --product hexlistd
	$(SWIFT) build --product hexlist
	@Scripts/demo-away

test: setup  ## Run all tests; tests that cannot run here are skipped with the reason (in CI a missing lab is a failure)
	$(SWIFT) build
	@# Browser tests run first, because a browser would slow down tests with timeouts.
	@Tests/Browser/run --check && Tests/Browser/run page --short || [ $$? = 77 ]
	@SWIFT="$(SWIFT)" Scripts/test

test-long: setup  ## Run all tests with long inputs and more rounds, then fuzz for ten minutes
	$(SWIFT) build
	@SWIFT="$(SWIFT)" HEXLIST_LONG_TESTS=1 Scripts/test
	Fuzz/run 600

test-browser: setup  ## Run the tests in real browsers (Tests/Browser) on machines of a lab; those that cannot run here are skipped with the reason
	$(SWIFT) build
	@set -e; for program in page story guest_page.py extension_host.py extension_items.py; do \
	    echo "$$program"; Tests/Browser/run "$$program" || [ $$? = 77 ]; \
	done

fuzz: setup  ## Fuzz code that strangers and scripts can reach, a minute per target
	Fuzz/run

bench: release  ## Run all programs in Benchmarks/ on a release build; missing tools are skipped with a message
	@set -e; for program in Benchmarks/*; do \
	    if [ -f "$$program" ] && [ -x "$$program" ]; then \
	        echo "$$program"; HEXLIST_BIN="$(CURDIR)/.build/release" "$$program" || [ $$? = 77 ]; \
	    fi; \
	done

lint: setup  ## Check the style of the sources and the syntax of the scripts
	$(SWIFT) format lint --strict --recursive --parallel $(FORMATTED)
	@Scripts/lint-scripts
	@Scripts/prose
	@$(SWIFT) package --package-path Examples/embedded-peer dump-package >/dev/null

format:  ## Format the sources
	$(SWIFT) format --in-place --recursive --parallel $(FORMATTED)

man:  ## Write the man pages of every command into .build/man
	@Scripts/man .build/man

deb: release  ## Build the Debian package .build/hexlist_VERSION_ARCH.deb
	@Packaging/deb .build/release .build

repo:  ## Add the package to the apt repository FOLDER (.build/apt), signed with the GPG key KEY
	@Packaging/repo "$(or $(FOLDER),.build/apt)" "$(KEY)"

install:  ## Install the release build with unit, man pages and completions into PREFIX (/usr/local)
	@Packaging/files install .build/release "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

uninstall:  ## Remove the files of `make install`; state and configuration stay
	@Packaging/files remove "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

clean:  ## Remove build results
	$(SWIFT) package clean

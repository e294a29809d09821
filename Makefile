# make help lists what there is. Every target runs from a clean clone.

SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
# The folder in which systemd looks for units of users; with PREFIX=$HOME/.local it is $HOME/.config/systemd/user.
UNITDIR ?= $(PREFIX)/lib/systemd/user
# The compiler's option has types made of their parts where they are used: from a name, Swift looks through all conformances of the program to make
# one. A compiler that does not have it refuses it, and it may be left out. The linker's leaves out a table of all symbols for libraries that
# would be loaded into the program: none is (Docs/Decisions/0020-the-command-line-starts-quickly.md). A section for each function, and no public
# symbol that has to stay, let the linker leave out unused functions. -Osize keeps the bounds of Benchmarks. lld comes with the toolchain.
RELEASE = --configuration release --static-swift-stdlib -Xlinker --no-export-dynamic \
	-Xswiftc -Xfrontend -Xswiftc -disable-concrete-type-metadata-mangled-name-accessors \
	-Xswiftc -Xfrontend -Xswiftc -function-sections -Xswiftc -Xfrontend -Xswiftc -internalize-at-link \
	-Xswiftc -Osize -Xswiftc -use-ld=lld -Xlinker --icf=safe
# Relative relocations take almost no space in this form, which glibc reads from 2.36 (Debian 12) on.
GLIBC := $(lastword $(shell getconf GNU_LIBC_VERSION 2>/dev/null))
ifneq ($(GLIBC),)
ifeq ($(shell printf '2.36\n%s\n' "$(GLIBC)" | sort --version-sort --check=quiet && echo new),new)
RELEASE += -Xlinker -z -Xlinker pack-relative-relocs
endif
endif
# The files that swift-format reads; folders that are missing are left out.
FORMATTED := $(wildcard Package.swift Sources Tests Benchmarks Fuzz Examples)

.DEFAULT_GOAL := help
.PHONY: help setup build release demo test test-long test-browser fuzz bench lint format man deb install uninstall clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## Install the packages that are missing (apt)
	@Scripts/setup

build: setup  ## Build hexlistd and hexlist for debugging, into .build/debug
	$(SWIFT) build

release: setup  ## Build them for use, into .build/release
	$(SWIFT) build $(RELEASE) --product hexlistd
	$(SWIFT) build $(RELEASE) --product hexlist

demo: setup  ## Two machines find each other and one sends a hex
	$(SWIFT) build --product hexlistd
	$(SWIFT) build --product hexlist
	@Scripts/demo

test: setup  ## All tests; what this machine cannot run is skipped by name, with the reason (in CI a missing lab fails)
	$(SWIFT) build
	@# Before the others: a browser beside them would have those wait that measure how long something takes.
	@Tests/Browser/run --check && Tests/Browser/run page --short || [ $$? = 77 ]
	@SWIFT="$(SWIFT)" Scripts/test

test-long: setup  ## All tests with long inputs and more rounds, then fuzzing for ten minutes
	$(SWIFT) build
	@SWIFT="$(SWIFT)" HEXLIST_LONG_TESTS=1 Scripts/test
	Fuzz/run 600

test-browser: setup  ## The tests in real browsers (Tests/Browser), on machines of a lab; what cannot run here is skipped by name
	$(SWIFT) build
	@set -e; for program in page extension_host.py extension_items.py; do \
	    echo "$$program"; Tests/Browser/run "$$program" || [ $$? = 77 ]; \
	done

fuzz: setup  ## Fuzz what strangers and scripts can reach, a minute a target
	Fuzz/run

bench: release  ## Run the benchmarks, on a release build: every program in Benchmarks/; what is not installed is skipped by name
	@set -e; for program in Benchmarks/*; do \
	    if [ -f "$$program" ] && [ -x "$$program" ]; then \
	        echo "$$program"; HEXLIST_BIN="$(CURDIR)/.build/release" "$$program" || [ $$? = 77 ]; \
	    fi; \
	done

lint: setup  ## Check the style of the sources and the syntax of the scripts
	$(SWIFT) format lint --strict --recursive --parallel $(FORMATTED)
	@Scripts/lint-scripts
	@$(SWIFT) package --package-path Examples/embedded-peer dump-package >/dev/null

format:  ## Put the sources into the project's style
	$(SWIFT) format --in-place --recursive --parallel $(FORMATTED)

man:  ## Write the man pages of every command into .build/man
	@Scripts/man .build/man

deb: release  ## Make .build/hexlist_VERSION_ARCH.deb of them
	@Packaging/deb .build/release .build

install:  ## Copy what `make release` built, with unit, man pages and completions, into PREFIX (/usr/local)
	@Packaging/files install .build/release "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

uninstall:  ## Remove what `make install` put there; state and configuration stay
	@Packaging/files remove "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

clean:  ## Remove what was built
	$(SWIFT) package clean

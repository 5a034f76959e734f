# SPDX-License-Identifier: GPL-2.0-only
#
# One makefile for everything. `make` builds ./lkvm, `make check` is what CI runs, `make demo` shows
# vhost beside userspace virtio. Variables: CC, STATIC=1, SAN=address,undefined|thread, V=1, TESTHOST=no.

MAKEFLAGS += --no-builtin-rules
CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
# Kernel developers have ARCH in their environment, in the kernel's spelling.
ARCH     ?= x86
override ARCH := $(patsubst x86_64,x86,$(patsubst i386,x86,$(ARCH)))
ifeq ($(wildcard $(ARCH)/arch.c),)
$(error ARCH=$(ARCH): there is no such architecture here; x86 is)
endif
SAN      ?=
STATIC   ?=
V        ?=
Q        := $(if $(V),,@)

# Each compiler and sanitizer has its own folder, so that changing one rebuilds nothing of another.
comma    := ,
B        := build/$(notdir $(CC))$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(STATIC),-static)

CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wshadow -Wwrite-strings \
	    -Wno-missing-field-initializers -Walloca -Wno-gnu-variable-sized-type-not-at-end
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -I$(B) -pthread -fno-strict-aliasing \
	    -fstack-protector-strong $(WARN) $(CFLAGS)
ALL_LDFLAGS = -pthread $(LDFLAGS)
ifneq ($(SAN),)
ALL_CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS += -fsanitize=$(SAN)
# gcc's TSan does not see fences, and says so; only the plain accesses around them would matter to it
ALL_CFLAGS  += $(if $(filter thread,$(SAN)),$(if $(findstring clang,$(CC)),,-Wno-tsan))
endif
ifneq ($(STATIC),)
ALL_CFLAGS  += -ffunction-sections -fdata-sections
ALL_LDFLAGS += -static -Wl,--gc-sections
endif
$(B)/tests/%: ALL_CFLAGS += -Itests

# kvm-cmd.c has main(); all else is an archive, of which a test links what it uses.
LIB_SRC  := $(filter-out kvm-cmd.c,$(wildcard *.c virtio/*.c hw/*.c $(ARCH)/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o) $(if $(wildcard x86/dsdt.asl),$(B)/x86/dsdt.o)
FAKE_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/fake/*.c))
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/[ft]-*.c))
HOSTILE  := $(patsubst %.c,$(B)/%.o,$(wildcard tests/hostile/*.c))
KVMTEST  := $(patsubst tests/kvm/%.c,$(B)/kvmtest/%,$(wildcard tests/kvm/[ft]-*.c))

.PHONY: all clean
all: lkvm

# Another compiler or STATIC=1 has its own binary; ./lkvm is the one that was asked for last.
.PHONY: FORCE
lkvm: $(B)/lkvm FORCE
	$(Q)cmp -s $< $@ || cp -f $< $@

$(B)/lkvm: $(B)/kvm-cmd.o $(B)/lib.a
	$(Q)echo "  LD   $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(Q)echo "  CC   $<"
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The DSDT: ASL compiled by iasl (Debian: acpica-tools), its bytes as an array.
$(B)/x86/dsdt.c: x86/dsdt.asl
	$(Q)mkdir -p $(@D)
	$(Q)echo "  IASL $<"
	$(Q)command -v iasl > /dev/null || { echo "iasl is missing; tests/deps build, or install acpica-tools" >&2; exit 1; }
	$(Q)iasl -ve -p $(B)/x86/dsdt $< > $(B)/x86/dsdt.log 2>&1 || { cat $(B)/x86/dsdt.log; exit 1; }
	$(Q)echo '#include "x86/dsdt.h"' > $@
	$(Q)echo 'const unsigned char dsdt_aml[] = {' >> $@
	$(Q)od -An -v -tx1 $(B)/x86/dsdt.aml | sed 's/ \(..\)/0x\1,/g' >> $@
	$(Q)echo '};' >> $@
	$(Q)echo 'const unsigned long dsdt_aml_len = sizeof(dsdt_aml);' >> $@

$(B)/x86/dsdt.o: $(B)/x86/dsdt.c
	$(Q)$(CC) $(ALL_CFLAGS) -I. -c -o $@ $<

$(B)/lib.a: $(LIB_OBJ)
$(B)/fake.a: $(FAKE_OBJ)
$(B)/%.a:
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# Tests named f-*.c inject faults: the calls that tests/fake/fault.c lists go through it.
WRAPS := $(shell sed -n "s/^WRAP.\([a-z0-9_]*\).*/-Wl,--wrap=\1/p" tests/fake/fault.c)
$(B)/unit/f-%: ALL_LDFLAGS += $(WRAPS)
$(B)/unit/%: $(B)/tests/unit/%.o $(B)/fake.a $(B)/lib.a
	$(Q)mkdir -p $(@D)
	$(Q)echo "  LD   $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Hostile guests: one program of several files, see tests/hostile/hostile.h
$(B)/unit/hostile: $(HOSTILE) $(B)/fake.a $(B)/lib.a
	$(Q)mkdir -p $(@D)
	$(Q)echo "  LD   $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/kvmtest/f-%: ALL_LDFLAGS += $(WRAPS)
$(B)/kvmtest/%: $(B)/tests/kvm/%.o $(B)/fake.a $(B)/lib.a
	$(Q)mkdir -p $(@D)
	$(Q)echo "  LD   $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# A guest for the tests that need a KVM but no Linux: 32-bit code in an ELF64 with a PVH note.
GUEST_CFLAGS := -m32 -march=i686 -Os -ffreestanding -fno-pic -fno-pie -fno-stack-protector -fcf-protection=none \
	    -fno-asynchronous-unwind-tables -mno-sse -Wall -Wextra -Werror
build/guest/payload.elf: guest/start.S guest/payload.c guest/payload.ld Makefile
	$(Q)mkdir -p $(@D)
	$(Q)echo "  GUEST $@"
	$(Q)gcc $(GUEST_CFLAGS) -c -o build/guest/start.o guest/start.S
	$(Q)gcc $(GUEST_CFLAGS) -c -o build/guest/payload.o guest/payload.c
	$(Q)ld -m elf_i386 --no-warn-rwx-segments -T guest/payload.ld -o build/guest/payload.elf32 build/guest/start.o build/guest/payload.o
	$(Q)objcopy -I elf32-i386 -O elf64-x86-64 build/guest/payload.elf32 $@

.PHONY: unit-bins kvm-bins
unit-bins: $(UNIT) $(B)/unit/hostile $(B)/lkvm
kvm-bins: $(KVMTEST) build/guest/payload.elf lkvm

# All parts run whatever fails, and the last line counts them together: see tests/check.
.PHONY: check check-unit check-kvm check-testhost lint analyze
check:
	$(Q)tests/check unit lint kvm testhost
check-unit check-kvm check-testhost: check-%:
	$(Q)tests/check $*
lint:
	$(Q)tests/check lint

# What hostile guests try, and what comes of it: one line each
.PHONY: check-hostile
check-hostile: $(B)/unit/hostile
	$(Q)$<

# vhost beside userspace virtio, on this machine or in the test host; and figures to keep
.PHONY: demo bench
demo:
	$(Q)tests/demo/run
bench:
	$(Q)tests/e2e/bench

# What the linters look into
.PHONY: lint-objects format
lint-objects: $(LIB_OBJ) $(B)/kvm-cmd.o
format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h') && tests/lint/wrap.py $$(git ls-files '*.c' '*.h')

# gcc's own path analysis, slower than all of lint. It takes a pointer into an object for the loss of the object.
.PHONY: $(LIB_SRC:%=analyze-%)
analyze: $(LIB_SRC:%=analyze-%)
$(LIB_SRC:%=analyze-%): analyze-%:
	$(Q)echo "  ANALYZE $*"
	$(Q)gcc $(ALL_CFLAGS) -fanalyzer -Wno-analyzer-malloc-leak -c -o /dev/null $*

# The manual page and the completion are printed by lkvm from the tables that its parser uses.
DESTDIR  ?=
PREFIX   ?= /usr/local
.PHONY: install lkvm-there
lkvm-there:
	$(Q)[ -x lkvm ] || $(MAKE) lkvm
build/lkvm.1: | lkvm-there
	$(Q)./lkvm help --man > $@
build/lkvm.bash: | lkvm-there
	$(Q)./lkvm help --completion > $@
# Installs the ./lkvm that is there: say STATIC=1 or CC= when making it.
install: build/lkvm.1 build/lkvm.bash
	$(Q)install -D -m 755 lkvm $(DESTDIR)$(PREFIX)/bin/lkvm
	$(Q)install -D -m 644 build/lkvm.1 $(DESTDIR)$(PREFIX)/share/man/man1/lkvm.1
	$(Q)install -D -m 644 build/lkvm.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lkvm

clean:
	$(Q)rm -rf build/gcc* build/clang* build/check build/lkvm.* lkvm

.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)

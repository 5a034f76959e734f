#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# Who may include whom: a file may include headers of its own rank or a lower one, and no header may
# include itself by a detour. The table here, the word "Rank N" in each header and the table in
# ARCHITECTURE.md are the same table; this script compares them.
import glob, re, sys

RANKS = {
    0: "include/uapi/*.h include/types.h include/log.h include/opt.h include/banned.h log.c opt.c",
    1: "include/mem.h include/bus.h include/loop.h include/hv.h include/virtio/iov.h"
       " mem.c bus.c loop.c irq.c virtio/iov.c",
    2: "include/machine.h include/boot.h include/console.h include/outcome.h include/stream.h include/ipc.h"
       " machine.c console.c outcome.c stream.c ipc.c ipc-client.c",
    3: "include/virtio/virtq.h include/virtio/backend.h include/hw/*.h",
    4: "include/virtio/*.h",
    5: "virtio/*.c hw/*.c virtio/*.h hw/*.h",
    6: "include/vm.h include/vcpu.h include/arch.h include/x86.h include/arm.h vm.c vcpu.c kvm-hv.c x86/* arm/*",
    7: "include/builtin.h include/devices.h builtin-*.c kvm-cmd.c devices.c",
}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
problems = []


def rank_of_all():
    ranks = {}
    for rank, patterns in RANKS.items():
        for pattern in patterns.split():
            for path in glob.glob(pattern):
                ranks.setdefault(path, rank)    # a name of its own comes before a pattern
    return ranks


def resolve(name, path, ranks):
    for folder in ("include/", path.rpartition("/")[0] + "/", ""):
        if folder + name in ranks:
            return folder + name
    return None


def find_cycle(path, edges, trail):
    if path in trail:
        problems.append("include cycle: " + " -> ".join(trail[trail.index(path):] + [path]))
        return
    for to in edges.get(path, []):
        find_cycle(to, edges, trail + [path])


ranks = rank_of_all()
edges = {}
for path in sorted(glob.glob("*.c") + glob.glob("*/*.[ch]") + glob.glob("include/*/*.h")):
    if path.startswith(("tests/", "guest/", "build/")):
        continue
    text = open(path).read()
    if path not in ranks:
        problems.append(f"{path}: has no rank; give it one in tests/lint/layers.py")
        continue
    said = re.search(r"\bRank[\s*]+(\d)\b", text)
    if path.startswith("include/") and (not said or int(said[1]) != ranks[path]):
        problems.append(f"{path}: says {said[0] if said else 'no rank'}, but is of rank {ranks[path]}")
    for name in INCLUDE.findall(text):
        to = resolve(name, path, ranks)
        if to is None:
            problems.append(f"{path}: includes {name}, which is not there")
        elif ranks[to] > ranks[path]:
            problems.append(f"{path} (rank {ranks[path]}) includes {to} (rank {ranks[to]})")
        elif path.endswith(".h"):
            edges.setdefault(path, []).append(to)
    if ranks[path] < 6 and re.search(r"#include <linux/kvm", text):
        problems.append(f"{path} (rank {ranks[path]}) includes linux/kvm.h; only rank 6 may")
for header in list(edges):
    find_cycle(header, edges, [])
rows = {int(r) for r in re.findall(r"^\| (\d) \|", open("ARCHITECTURE.md").read(), re.M)}
if rows != set(RANKS):
    problems.append("ARCHITECTURE.md: its table of ranks has other rows than tests/lint/layers.py")
print("\n".join(dict.fromkeys(problems)))
sys.exit(bool(problems))

# shellcheck shell=bash disable=SC2016 # text for another program to expand
# SPDX-License-Identifier: GPL-2.0-only
#
# What the image builders share: where Debian packages come from, how a set of them is unpacked
# without installing anything, and how a finished result is recognised so that it is built once.

# The Debian release inside the test host and the guest, whatever release this machine runs.
SUITE=${TESTHOST_SUITE:-trixie}

PATH=$PATH:/usr/sbin:/sbin	# depmod, mke2fs

say() { printf '%s: %s\n' "${0#"$PWD"/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# The mirror this machine's own apt is set up for. apt is asked rather than its files parsed, so both
# forms of sources (one line each, deb822) and mirror lists work. Third-party sources and the
# security archive do not hold whole releases and are passed over.
debian_mirror()
{
	local uri release component origin fallback=

	while read -r uri release component origin; do
		[[ $component = main && $release != *-* ]] || continue
		[[ $origin = Debian ]] && { echo "$uri"; return; }
		[[ $uri = */debian/ ]] && fallback=${fallback:-$uri}
	done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' \
		'Created-By: Packages' 2>/dev/null)
	echo "${fallback:-http://deb.debian.org/debian/}"
}

# debian_unpack DIR ARCH PACKAGE...: the packages and what they depend on, unpacked below DIR.
# No maintainer script runs, so this is quick and works for any user (to whom the files belong then).
debian_unpack()
{
	local dir=$1 arch=$2 mode=()
	shift 2

	[[ $(id -u) = 0 ]] || mode=(--mode=chrootless)
	mmdebstrap --quiet "${mode[@]}" --variant=extract --architectures="$arch" --components=main \
		--include="$(IFS=,; echo "$*")" --aptopt='APT::Install-Recommends "false"' \
		"$SUITE" "$dir" "$(debian_mirror)"
}

# kernel_version ROOT: the one kernel unpacked below ROOT
kernel_version()
{
	local versions=("$1"/lib/modules/*)

	[[ ${#versions[@]} = 1 && -d ${versions[0]} ]] || die "$1: no kernel, or more than one"
	basename "${versions[0]}"
}

# copy_modules ROOT DIR MODULE...: the modules and their dependencies, uncompressed, as
# DIR/NN-name.ko whose order by name is the order to load them in
copy_modules()
{
	local root=$1 dir=$2 version module file name n=10
	local -A seen=()
	shift 2

	version=$(kernel_version "$root")
	depmod -b "$root" "$version"
	mkdir -p "$dir"
	for module; do
		while read -r file; do
			[[ -z ${seen[$file]:-} ]] || continue
			seen[$file]=1
			name=$(basename "$file")
			case $name in
			*.xz)  xz -dc "$file" > "$dir/$n-${name%.xz}" ;;
			*.zst) zstd -qdc "$file" > "$dir/$n-${name%.zst}" ;;
			*)     cp "$file" "$dir/$n-$name" ;;
			esac
			n=$((n + 1))
		done < <(modprobe -d "$root" -S "$version" --show-depends "$module" |
			awk '$1 == "insmod" { print $2 }')
	done
}

# recipe_hash WORD|FILE...: changes when any of the files or words does
recipe_hash()
{
	local item

	for item; do
		if [[ -f $item ]]; then cat "$item"; else echo "$item"; fi
	done | sha256sum | cut -d' ' -f1
}

# up_to_date DIR HASH: does DIR hold the finished result of that very recipe?
up_to_date()
{
	[[ -f $1/stamp && $(< "$1/stamp") = "$2" ]]
}

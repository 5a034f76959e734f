# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: GPL-2.0-only
#
# What cannot work is refused: at once, with status 125 and exactly one line on stderr, which names the
# option, what was given, the reason, and where there is one the remedy. Nothing is left behind.
#
# groups: kernels=8 options=12 devices=25

QUICK=${QUICK:-20}	# seconds that "at once" may take; an emulated host is slow

# refuse NAME 'REGEX REGEX...' ARGUMENT...: each regular expression must match the line (a dot stands for a
# space). WITH, if set, is
# a command to run lkvm through.
refuse()
{
	local name=$1 regexes=$2 before start took status=0 problems='' regex
	shift 2

	before=$(leavings)
	start=${EPOCHREALTIME/./}
	timeout 60 "${WITH[@]}" "$LKVM" run --name refused "$@" < /dev/null > "$WORK/out" 2> "$WORK/err" || status=$?
	took=$((${EPOCHREALTIME/./} - start))

	[[ $status = 125 ]] || problems+="status $status, wanted 125"$'\n'
	[[ $(wc -l < "$WORK/err") = 1 ]] || problems+="$(wc -l < "$WORK/err") lines on stderr, wanted 1"$'\n'
	for regex in $regexes; do
		grep -qiE -e "$regex" "$WORK/err" || problems+="stderr does not say: $regex"$'\n'
	done
	((took < QUICK * 1000000)) || problems+="it took $((took / 1000)) ms, wanted less than $QUICK s"$'\n'
	[[ $(leavings) = "$before" ]] || problems+="left behind: $(leavings)"$'\n'

	if [[ -z $problems ]]; then
		ok "$name"
	else
		not_ok "$name" "lkvm run $*" "${problems%$'\n'}" "stderr: $(cat "$WORK/err")"
	fi
}
WITH=()

fine=(-k "$GUEST/kernel" -i "$GUEST/initrd" -m 128 -p "$CMDLINE")

kernels()
{
	cd "$WORK" || return
	refuse "no such kernel" "$WORK/none no.such.file" -k "$WORK/none" -n mode=none
	: > empty
	refuse "empty kernel" "$WORK/empty empty|short|too.small|not.a" -k "$WORK/empty" -n mode=none
	head -c 100000 "$GUEST/kernel" > truncated
	refuse "truncated kernel" "$WORK/truncated short|truncated|end" -k "$WORK/truncated" -n mode=none
	head -c 100000 /dev/zero | tr '\0' 'x' > text
	refuse "a text file as kernel" "$WORK/text not.a|format|bzImage" -k "$WORK/text" -n mode=none
	mkdir directory
	refuse "a directory as kernel" "$WORK/directory directory" -k "$WORK/directory" -n mode=none
	refuse "no such initrd" "$WORK/none no.such.file" -k "$GUEST/kernel" -i "$WORK/none" -n mode=none
	truncate -s 256M initrd
	refuse "initrd larger than memory" "$WORK/initrd memory|-m" -k "$GUEST/kernel" -i "$WORK/initrd" -m 128 -n mode=none
}

options()
{
	local net

	refuse "-m 0" "(-m|mem) 0" "${fine[@]}" -n mode=none -m 0
	refuse "-m 10X" "(-m|mem) 10X" "${fine[@]}" -n mode=none -m 10X
	refuse "-c 0" "(-c|cpus) 0" "${fine[@]}" -n mode=none -c 0
	refuse "-c x" "(-c|cpus) x" "${fine[@]}" -n mode=none -c x
	refuse "--no-such-option" "no-such-option" "${fine[@]}" -n mode=none --no-such-option
	for net in vhost=yes mode=tapx tapif=abcdefghijklmnop guest_mac=01:00:5e:00:00:01 \
		guest_mac=02:zz:00:00:00:01 guest_mac=02:15:15 nosuchkey=1; do
		refuse "-n $net" "-n|net ${net%%=*} ${net#*=}" "${fine[@]}" -n "mode=tap,$net"
	done
}

# Runs a command where /dev holds the ordinary files and, of the others, only those named
with_devices() # NAME... -- COMMAND...
{
	local names=()

	while [[ $1 != -- ]]; do names+=("$1"); shift; done
	shift
	unshare --mount -- bash -c '
		mkdir -p "$0"; mount -t tmpfs dev "$0"; mkdir "$0/net"
		for name in null zero full random urandom tty fd stdin stdout stderr $1; do cp -a /dev/$name "$0/$name"; done
		chmod -f 600 "$0/kvm" "$0/vhost-net" "$0/net/tun"
		mount --move "$0" /dev
		shift; exec "$@"' "$WORK/dev" "${names[*]}" "$@"
}

devices()
{
	local holder nic=(-n "mode=tap,vhost=1,tapif=e2e0")

	chmod 755 "$WORK"	# for the user nobody
	# timeout cannot run a function of this shell
	export -f with_devices
	export WORK
	with() { WITH=(bash -c 'with_devices "$@"' with "$@" --); }

	with vhost-net net/tun
	refuse "no /dev/kvm" "/dev/kvm no.such.file" "${fine[@]}" "${nic[@]}"
	with kvm net/tun
	refuse "no /dev/vhost-net, vhost=1" "/dev/vhost-net no.such.file modprobe.vhost_net" "${fine[@]}" "${nic[@]}"
	with kvm vhost-net
	refuse "no /dev/net/tun" "/dev/net/tun no.such.file" "${fine[@]}" "${nic[@]}"
	with kvm vhost-net net/tun
	WITH+=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	refuse "no permission for /dev/kvm" "/dev/kvm permission.denied group|root|permission" "${fine[@]}" "${nic[@]}"
	WITH=()

	ip tuntap add dev busy0 mode tap
	ip link set busy0 up
	socat TUN,tun-type=tap,tun-name=busy0,iff-no-pi - < <(exec sleep 1000) > /dev/null 2>&1 & holder=$!
	eventually eval 'ip -o link show busy0 | grep -q LOWER_UP'
	refuse "a tap in use" "tapif|-n busy0 busy" "${fine[@]}" -n mode=tap,tapif=busy0
	kill $holder
	ip link del busy0
	ip link add e2e9 type dummy
	refuse "tapif= names another kind of interface" "tapif|-n e2e9" "${fine[@]}" -n mode=tap,tapif=e2e9
	ip link del e2e9
}

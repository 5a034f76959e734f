# shellcheck shell=bash disable=SC2034 # variables are for the tests
# SPDX-License-Identifier: GPL-2.0-only
#
# What the end-to-end tests are written with. They run as root on a host with KVM and vhost-net, each
# group in a network namespace of its own (see `group`), so that a tap or an address one of them leaves
# behind is seen, and harms no other.
#
# Nothing here waits for a fixed time: a wait is for an event and has a limit, which is generous,
# because the host may be an emulated one and fifty times slower than a real one.

: "${LKVM:?the lkvm to test}" "${GUEST:?where the kernel and initrd of the guest are}"
LIMIT=${LIMIT:-120}		# seconds, for anything that should take a few
WORK=$(mktemp -d)
[[ -z ${VMM:-} ]] || VMM=$PWD/$VMM
HOST_IP=192.168.33.1 GUEST_IP=192.168.33.15
CMDLINE="console=ttyS0 quiet loglevel=4 panic=-1 reboot=k no_timer_check tsc=reliable"

# ---- results -------------------------------------------------------------------------------------

ok()     { echo "ok - $1"; }
skip()   { echo "ok - $1 # SKIP $2"; }
not_ok() { echo "not ok - $1"; shift; [[ $# = 0 ]] || printf '%s\n' "$@" | diag; }
diag()   { tr -d '\r' | tail -n 40 | sed 's/^/#   /'; }

# check NAME COMMAND...: passed if the command says so; its output explains if it does not
check()
{
	local name=$1 output
	shift

	if output=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$* failed" "$output"; fi
}

# same NAME GOT WANTED
same()
{
	if [[ $2 = "$3" ]]; then ok "$1"; else not_ok "$1" "got:    $2" "wanted: $3"; fi
}

# between NAME GOT LOW HIGH, whole numbers
between()
{
	if [[ $2 =~ ^-?[0-9]+$ ]] && (($2 >= $3 && $2 <= $4)); then
		ok "$1"
	else
		not_ok "$1" "got $2, wanted $3 to $4"
	fi
}

# ---- virtual machines ----------------------------------------------------------------------------
#
# A machine called NAME has WORK/NAME.console (its serial output) and WORK/NAME.err (the VMM's stderr).

declare -A VM_PID=() VM_IN=() VM_OUT=()

# vm_start NAME [-e WORD] [ARGUMENT...]: starts lkvm (or ./$VMM, which takes the same arguments) with the
# test kernel. WORD is what the guest does once it is up, see guest-init. Does not wait for it.
vm_start()
{
	local name=$1 word=serve in out
	shift
	[[ ${1:-} != -e ]] || { word=$2; shift 2; }

	mkfifo "$WORK/$name.in"
	exec {in}<> "$WORK/$name.in"
	: > "$WORK/$name.console"
	# (a shell starts what it puts in the background with SIGINT ignored)
	env --default-signal=INT,QUIT "${VMM:-$LKVM}" run --name "$name" -k "$GUEST/kernel" -i "$GUEST/initrd" \
		-p "$CMDLINE e2e=$word" "$@" \
		< "$WORK/$name.in" > "$WORK/$name.console" 2> "$WORK/$name.err" {in}>&- &
	VM_PID[$name]=$! VM_IN[$name]=$in
	exec {out}< <(exec tail -s 0.2 --pid="${VM_PID[$name]}" -n +1 -f "$WORK/$name.console" 2> /dev/null)
	VM_OUT[$name]=$out
}

# vm_line NAME REGEX: reads the console up to the line that matches, which is then in LINE (without its
# carriage return), all lines read before it are in LINES. Fails if the machine ends or nothing comes, and
# then the group has failed, whatever is made of it.
vm_line()
{
	local name=$1 deadline=$((SECONDS + LIMIT)) out=${VM_OUT[$1]}

	LINES=
	while ((SECONDS < deadline)) && IFS= read -r -t "$((deadline - SECONDS + 1))" -u "$out" LINE; do
		LINE=${LINE%%$'\r'*}
		[[ ! $LINE =~ $2 ]] || return 0
		LINES+=$LINE$'\n'
	done
	echo "# $name: no line like '$2' on the console; its end, and stderr:" >&2
	cat "$WORK/$name.console" "$WORK/$name.err" | diag >&2
	echo "$name: no line like '$2'" >> "$WORK/lost"
	return 1
}

vm_up() { vm_line "$1" '^e2e: up'; }

# guest NAME COMMAND: runs the command in the guest; its output and status are this function's
guest()
{
	local name=$1 n=${EPOCHREALTIME/./} output

	echo "$n $2" >&"${VM_IN[$name]}"
	vm_line "$name" "^e2e: begin $n\$" || return 255
	vm_line "$name" "e2e: end $n [0-9]+\$" || return 255
	output=$LINES${LINE%%e2e: end*}
	REPLY=${output%$'\n'}
	[[ -z $REPLY ]] || printf '%s\n' "$REPLY"
	return "${LINE##* }"
}

# guest_out NAME COMMAND: the same, output only in REPLY
guest_out() { guest "$@" > /dev/null; }

# eventually COMMAND...: tries until it succeeds
eventually()
{
	local deadline=$((SECONDS + LIMIT))

	until "$@"; do
		((SECONDS < deadline)) || return
		sleep 0.1
	done > /dev/null 2>&1
}

# ended PID: waits for a process to end, which need not be a child of this shell
ended() { timeout "$LIMIT" tail -s 0.1 --pid="$1" -f /dev/null; }

# vm_end NAME: waits for the VMM to end by itself; its status is then in STATUS
vm_end()
{
	local name=$1 in=${VM_IN[$1]} out=${VM_OUT[$1]}

	STATUS=still-running
	if ended "${VM_PID[$name]}"; then
		STATUS=0
		{ wait "${VM_PID[$name]}" || STATUS=$?; } 2> /dev/null
	else
		kill -9 "${VM_PID[$name]}"
	fi
	exec {in}>&- {out}<&-
	rm -f "$WORK/$name.in"
}

# vm_stop NAME: powers the guest off, by force if it does not
vm_stop()
{
	echo "0 poweroff -f" >&"${VM_IN[$1]}"
	vm_end "$1"
}

vm_stderr() { cat "$WORK/$1.err"; }

# ---- network -------------------------------------------------------------------------------------

taps()    { ip -o link show type tun | awk -F': ' '{ print $2 }'; }
sockets() { find /root /run /tmp /var/tmp -xdev -type s 2> /dev/null | sort; }

# What a VM that has ended must not leave behind
leavings() { taps; sockets; }

# In the guest: waits until something listens on iperf3's port
LISTENING='until grep -q ":1451 .* 0A" /proc/net/tcp /proc/net/tcp6; do usleep 50000; done'

# iperf NAME ARGUMENT...: one run of iperf3 against a server started for it in the guest, Mbit/s in
# REPLY (and how many in BYTES). Plain: the guest receives. -R: the guest sends.
iperf() { iperf_serve "$1" && iperf_run "${@:2}"; }

# The two halves of it. During the second nothing is said on the guest's console.
iperf_serve() { guest_out "$1" "killall -q iperf3; iperf3 -s -1 -D > /dev/null 2>&1; $LISTENING"; }
iperf_run()
{
	local output

	if ! output=$(timeout "$LIMIT" iperf3 -J -c "$GUEST_IP" "$@" 2>&1); then
		REPLY="iperf3 $*: $output"
		return 1
	fi
	read -r BYTES REPLY < <(jq -r '.end.sum_received |
		"\(.bytes) \(.bits_per_second / 1e6 * 10 | round / 10)"' <<< "$output")
	[[ $REPLY != 0 ]]
}

# listening PORT: waits until something on this host listens there
listening() { eventually eval "ss -Hltn 'sport = :$1' | grep -q ."; }

# stat_of NAME FILTER: a number from the counters of a running VM
stat_of() { "$LKVM" stat -n "$1" --json | jq -r "$2"; }

cleanup()
{
	local name

	for name in "${!VM_PID[@]}"; do
		kill -9 "${VM_PID[$name]}" && wait "${VM_PID[$name]}"
	done 2> /dev/null
	rm -rf "$WORK"
}
trap cleanup EXIT

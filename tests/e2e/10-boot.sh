# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# How a VM ends: by the guest, by a limit, by a signal; and what is left then (nothing).
#
# groups: poweroff=10 reboot=30 panic=12 restart=30 signals=25 tty=25 smp=10

# Every end has its status and one line on stderr that says why (beside the registers of a vCPU that died)
ended_with() { # NAME OF TEST, VM, STATUS
	vm_end "$2"
	same "$1: status $3" "$STATUS" "$3"
	same "$1: one line on stderr says why" "$(grep -vc ': rip ' "$WORK/$2.err")" 1
	[[ $(wc -l < "$WORK/$2.err") = 1 ]] || vm_stderr "$2" | diag
}

poweroff()
{
	local before
	before=$(leavings)

	vm_start off -e poweroff -m 256 -n mode=none
	ended_with "poweroff" off 0
	check "the guest came up" grep -q '^e2e: up' "$WORK/off.console"
	same "nothing is left behind" "$(leavings)" "$before"
}

reboot()
{
	local way

	for way in k=0 a=0 t=33; do
		CMDLINE="${CMDLINE/reboot=?/reboot=${way%=*}}" vm_start "re${way%=*}" -e reboot -m 256 -n mode=none
		ended_with "reboot=${way%=*}" "re${way%=*}" "${way#*=}"
		check "reboot=${way%=*}: the guest came up" grep -q '^e2e: up' "$WORK/re${way%=*}.console"
	done
}

# The reset that panic=-1 ends in is not taken for one that the guest wanted
panic()
{
	vm_start panic -m 256 -n mode=none
	vm_up panic || return
	echo "0 echo c > /proc/sysrq-trigger" >&"${VM_IN[panic]}"
	ended_with "panic" panic 34
	check "panic: the console has its line" grep -q 'Kernel panic - not syncing: sysrq' "$WORK/panic.console"
}

# One lkvm, several lives of the guest, the tap stays
restart()
{
	local life

	vm_start lives -m 256 -n mode=tap,tapif=e2e0,vhost=1 --reboot restart
	for life in 1 2 3; do
		vm_up lives || return
		check "life $life: the guest reaches the host" guest lives "ping -c 2 -W 20 $HOST_IP"
		same "life $life: the tap is the same" "$(taps)" e2e0
		[[ $life = 3 ]] || echo "0 reboot -f" >&"${VM_IN[lives]}"
	done
	vm_stop lives
	same "--reboot restart: poweroff ends it: status" "$STATUS" 0
}

signals()
{
	local before signal CMDLINE="$CMDLINE earlyprintk=serial loglevel=8"	# its first line comes early

	before=$(leavings)
	for signal in TERM=143 INT=130; do
		vm_start "${signal%=*}" -e idle -m 128 -n mode=tap,tapif=e2e0
		vm_line "${signal%=*}" . || return
		kill -s "${signal%=*}" "${VM_PID[${signal%=*}]}"
		ended_with "SIG${signal%=*}" "${signal%=*}" "${signal#*=}"
		same "SIG${signal%=*}: nothing is left behind" "$(leavings)" "$before"
	done

	vm_start limit -e idle -m 128 -n mode=tap,tapif=e2e0 --timeout 2
	ended_with "--timeout 2" limit 124
	same "--timeout: nothing is left behind" "$(leavings)" "$before"

	vm_start killed -e idle -m 128 -n mode=tap,tapif=e2e0
	vm_line killed . || return
	same "the tap exists while the VM runs" "$(taps)" e2e0
	kill -9 "${VM_PID[killed]}"
	vm_end killed
	same "SIGKILL: no tap is left" "$(taps)" ""
	vm_start killed -e idle -m 128 -n mode=tap,tapif=e2e0 --timeout 2
	ended_with "the same name again after SIGKILL" killed 124
}

# The terminal is as it was, whichever way the VM ended
tty()
{
	local way command=("$LKVM" run --name tty -k "$GUEST/kernel" -i "$GUEST/initrd" -m 256 -n mode=none)
	local -A run=(
		[poweroff]="${command[*]} -p '$CMDLINE e2e=poweroff'"
		[timeout]="${command[*]} -p '$CMDLINE e2e=idle' --timeout 2"
		[SIGTERM]="timeout --foreground 2 ${command[*]} -p '$CMDLINE e2e=idle'"
		[refused]="${command[*]} -c 0"
	)

	for way in poweroff timeout SIGTERM refused; do
		cat > "$WORK/tty.sh" <<-INNER
			stty -g > "$WORK/before"
			${run[$way]}
			stty -g > "$WORK/after"
		INNER
		timeout "$LIMIT" script -qec "bash $WORK/tty.sh" "$WORK/typescript" > /dev/null < /dev/null
		same "$way: terminal settings are restored" "$(< "$WORK/after")" "$(< "$WORK/before")"
	done
}

smp()
{
	vm_start two -m 256 -c 2 -n mode=none
	vm_up two || return
	same "-c 2: both CPUs are online" "$(guest two nproc)" 2
	vm_stop two
	same "-c 2: poweroff" "$STATUS" 0
}

# shellcheck shell=bash disable=SC2016 # text for another program to expand
# SPDX-License-Identifier: GPL-2.0-only
#
# The NIC on a tap, with the data path here (vhost=0) and in the kernel (vhost=1).
#
# groups: features=30 userspace=40 vhost=47 big=47 control=40

# The guest cannot tell who moves its bytes
features()
{
	local vhost what
	local -A seen=()

	for vhost in 0 1; do
		vm_start nic -m 256 -n "mode=tap,vhost=$vhost,tapif=e2e0"
		vm_up nic || return
		guest_out nic 'cat /sys/class/net/eth0/device/features'
		seen[features$vhost]=$REPLY
		guest_out nic 'cat /sys/class/net/eth0/address'
		seen[mac$vhost]=$REPLY
		guest_out nic 'ethtool -k eth0'
		seen[offloads$vhost]=$REPLY
		guest_out nic 'cat /sys/class/net/eth0/device/../device'
		same "vhost=$vhost: a modern virtio-pci device" "$REPLY" 0x1041
		same "vhost=$vhost: VIRTIO_F_VERSION_1 is negotiated" "${seen[features$vhost]:32:1}" 1
		guest_out nic 'grep -cE "MSI.*virtio0-(in|out)put" /proc/interrupts'
		same "vhost=$vhost: both queues have an MSI-X vector" "$REPLY" 2
		vm_stop nic
	done
	for what in features mac offloads; do
		same "$what are the same with vhost=0 and vhost=1" "${seen[${what}1]}" "${seen[${what}0]}"
	done
	diag <<< "features ${seen[features1]}"
}

userspace() { traffic 0; }
vhost()     { traffic 1; }

traffic()
{
	local vm=vhost$1

	vm_start "$vm" -m 256 -n "mode=tap,vhost=$1,tapif=e2e0,guest_mac=02:15:15:00:00:0$1"
	vm_up "$vm" || return
	same "vhost=$1: guest_mac= is what the guest has" "$(guest "$vm" 'cat /sys/class/net/eth0/address')" "02:15:15:00:00:0$1"
	check "vhost=$1: ping from the guest" guest "$vm" "ping -c 3 -W 20 $HOST_IP"
	both_ways "vhost=$1" "$vm"
	copies "vhost=$1" "$vm"
	large_frames "vhost=$1" "$vm"
	[[ -n ${VMM:-} ]] || counts "vhost=$1" "$vm"
	rebind "vhost=$1, after 20 times unbind and bind" "$vm"
	vm_stop "$vm"
	same "vhost=$1: poweroff" "$STATUS" 0
	same "vhost=$1: no tap is left" "$(taps)" ""
}

# What the control socket changes of a running machine: who moves its packets, its cable, its vCPUs
control()
{
	local who

	vm_start ctl -m 256 -n mode=tap,vhost=0,tapif=e2e0,queues=1
	vm_up ctl || return
	check "vhost=0 at first" guest ctl "ping -c 2 -W 20 $HOST_IP"
	for who in 1 0 1; do
		check "lkvm net: vhost=$who" "$LKVM" net ctl "vhost=$who"
		same "vhost=$who: who serves the first queue" \
			"$("$LKVM" stat -n ctl --json | jq -r '.devices[0].queues[0].backend')" \
			"$([[ $who = 1 ]] && echo vhost || echo userspace)"
		check "vhost=$who: ping" guest ctl "ping -c 2 -W 20 $HOST_IP"
		both_ways "changed to vhost=$who" ctl
	done
	check "lkvm net: link=down" "$LKVM" net ctl link=down
	check "the guest sees it" eventually guest ctl 'grep -qx 0 /sys/class/net/eth0/carrier'
	check "lkvm net: link=up" "$LKVM" net ctl link=up
	check "the guest sees that, too" eventually guest ctl 'grep -qx 1 /sys/class/net/eth0/carrier'
	check "lkvm pause" "$LKVM" pause -n ctl
	check "lkvm resume" "$LKVM" resume -n ctl
	check "after all of it: ping" guest ctl "ping -c 2 -W 20 $HOST_IP"
	vm_stop ctl
	same "after all of it: poweroff" "$STATUS" 0
}

both_ways() # TEST VM
{
	check "$1: the guest receives" iperf "$2" -n 16M
	check "$1: the guest sends" iperf "$2" -n 16M -R
}

# What arrives is what was sent. (TCP would not notice: segments may cross without a checksum.)
copies()
{
	local pid

	socat -u TCP-LISTEN:9000,reuseaddr "CREATE:$WORK/copy" & pid=$!
	listening 9000
	guest_out "$2" "head -c 8M /dev/urandom > /tmp/sent; nc $HOST_IP 9000 < /tmp/sent" && ended $pid
	socat -u "FILE:$WORK/copy" TCP-LISTEN:9000,reuseaddr & pid=$!
	listening 9000
	guest_out "$2" "nc $HOST_IP 9000 < /dev/null > /tmp/received" && ended $pid
	check "$1: 8 MiB come back as they went" guest "$2" 'ls -l /tmp; cmp /tmp/sent /tmp/received'
}

# Segmentation is left to whoever needs it: frames of up to 64 KiB cross the tap in both directions
large_frames()
{
	local from pid

	for from in "$GUEST_IP" "$HOST_IP"; do
		tcpdump -i e2e0 -Z root -c 1 -nn "greater 30000 and src host $from" > "$WORK/dump" 2> "$WORK/dump.err" & pid=$!
		eventually grep listening "$WORK/dump.err"
		if [[ $from = "$GUEST_IP" ]]; then iperf "$2" -n 16M -R; else iperf "$2" -n 16M; fi
		kill -INT $pid 2> /dev/null
		wait $pid
		check "$1: frames above 30000 bytes from $from on the tap" grep -q 'length [3-6][0-9][0-9][0-9][0-9]$' "$WORK/dump"
		[[ -s $WORK/dump ]] || diag < "$WORK/dump.err"
	done
}

# With the data path in the kernel nothing of a transfer is this process's business: no exit of a vCPU to
# userspace, no wakeup of the loop. Reading the counters wakes the loop as well; how often is measured
# first, by reading them twice while nothing else goes on, and taken off. With the data path here the same
# counters must show it, else they show nothing.
counts()
{
	local vm=$2 before after cost way reverse low=0 high=19
	[[ $vm = vhost1 ]] || low=64 high=100000000

	for way in to from; do
		reverse=()
		[[ $way = to ]] || reverse=(-R)
		iperf_serve "$vm"
		before=$(counted "$vm")
		cost=$(($(counted "$vm") - before))
		before=$((before + cost))
		iperf_run -n 64M "${reverse[@]}" || not_ok "$1: 64 MiB for counting" "$REPLY"
		after=$(counted "$vm")
		between "$1: exits to userspace and loop wakeups for 64 MiB $way the guest" \
			$((after - before - cost)) $low $high
		echo "#   counted: $((after - before - cost))"
	done
}

counted()
{
	local n
	n=$(stat_of "$1" '.exits.userspace + .loop_wakeups')
	[[ $n =~ ^[1-9][0-9]*$ ]] || { echo "lkvm stat tells no counters: $n" | tee -a "$WORK/lost" >&2; n=0; }
	echo "$n"
}

# 20 times in all, most of them at the level of the driver, some from the PCI device on
rebind()
{
	guest_out "$2" 'd=$(basename $(readlink -f /sys/class/net/eth0/device)); p=$(basename $(readlink -f /sys/class/net/eth0/device/..))'
	check "$1: virtio_net is bound again" guest "$2" \
		'cd /sys/bus/virtio/drivers/virtio_net; for i in $(seq 18); do echo $d > unbind && echo $d > bind || break; done; ls; [ -e $d/net/eth0 -a $i = 18 ]'
	check "$1: virtio-pci is bound again" guest "$2" \
		'cd /sys/bus/pci/drivers/virtio-pci; for i in 1 2; do echo $p > unbind && echo $p > bind || break; done; ls; [ -e $p/virtio*/net/eth0 -a $i = 2 ]'
	guest_out "$2" "ip addr add $GUEST_IP/24 dev eth0 && ip link set eth0 up" || diag <<< "$REPLY"
	both_ways "$1" "$2"
}

# More memory than fits below 4 GiB, so that buffers come from above it; all CPUs
big()
{
	vm_start big -m 6144 -c 4 -n mode=tap,vhost=1,tapif=e2e0
	vm_up big || return
	same "-c 4: all CPUs are online" "$(guest big nproc)" 4
	between "-m 6144: the guest has that memory" \
		"$(guest big "awk '\$1 == \"MemTotal:\" { print int(\$2 / 1024) }' /proc/meminfo")" 5700 6144
	# The page allocator starts from the top; make sure that it still does
	check "-m 6144: there are free pages above 4 GiB" guest big \
		"awk '\$2 == \"0,\" { zone = \$4 } zone == \"Normal\" && \$1 == \"nr_free_pages\" && \$2 > 200000 { found = 1 } END { exit !found }' /proc/zoneinfo"
	both_ways "-m 6144 -c 4 vhost=1" big
	vm_stop big
	same "-m 6144 -c 4: poweroff" "$STATUS" 0
}

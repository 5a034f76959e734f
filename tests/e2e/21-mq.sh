# shellcheck shell=bash disable=SC2016 # text for another program to expand
# SPDX-License-Identifier: GPL-2.0-only
#
# A NIC of several queue pairs: a vhost worker and a tap queue for each, as many in use as the guest says.
#
# groups: mq=200 default=45

# As many times each way does ethtool change the number of pairs under load
CHANGES=10

mq()
{
	local pairs

	vm_start mq -m 256 -c 4 -n mode=tap,vhost=1,queues=4,tapif=e2e0
	vm_up mq || return
	same "queues=4: that many vhost workers" "$(workers mq)" 4
	same "queues=4: that many queues of the tap are open" "$(tap_fds mq)" 4
	same "queues=4: the guest can have 4 pairs" "$(channels mq | head -n 1)" 4
	same "queues=4: and uses them" "$(channels mq | tail -n 1)" 4
	check "queues=4: the guest receives, 8 streams" iperf mq -n 16M -P 8
	check "queues=4: the guest sends, 8 streams" iperf mq -n 16M -P 8 -R
	between "queues=4: several queues received" "$(busy_queues mq rx)" 2 4
	between "queues=4: several queues sent" "$(busy_queues mq tx)" 2 4
	changes
	for pairs in 1 4; do
		check "ethtool -L combined $pairs, at rest" guest mq "ethtool -L eth0 combined $pairs"
		quiet_queues $pairs
		check "$pairs of 4 pairs: the guest receives" iperf mq -n 8M -P 8
		check "$pairs of 4 pairs: the guest sends" iperf mq -n 8M -P 8 -R
	done
	vm_stop mq
	same "queues=4: poweroff" "$STATUS" 0
	same "queues=4: no tap is left" "$(taps)" ""
}

# vhost's workers are tasks of lkvm (Linux 6.4 and later); the number in their name is of another namespace
workers() { cat "/proc/${VM_PID[$1]}"/task/*/comm | grep -c "^vhost-"; }

tap_fds() { find "/proc/${VM_PID[$1]}/fd" -lname /dev/net/tun | wc -l; }

# How many pairs the guest can have, and how many it uses: two lines
channels() { guest "$1" 'ethtool -l eth0' | sed -n 's/^Combined:[^0-9]*//p'; }

# What each queue did since the guest began, a line for each: interrupts for what came in (rx), kicks for
# what went out (tx). Not packets: newer kernels do not tell ethtool of them.
queue_work()
{
	if [[ $2 = rx ]]; then
		guest "$1" 'cat /proc/interrupts' | awk '/-input/ { n = 0; for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i; print n }'
	else
		guest "$1" 'ethtool -S eth0' | sed -nE 's/^ *tx(_queue_)?[0-9]+_kicks: *//p'
	fi
}

busy_queues() { queue_work "$1" "$2" | awk '$1 >= 10 { n++ } END { print n + 0 }'; }

# With N pairs in use, flows of all kinds reach the guest, by the first N
quiet_queues()
{
	local before after lost

	before=$(queue_work mq rx)
	lost=$(guest mq "ping -c 5 -i 0.2 -W 20 $HOST_IP" | sed -n 's/.* \([0-9]*\)% packet loss.*/\1/p')
	same "$1 of 4 pairs: no ping is lost" "$lost" 0
	for port in $(seq 20000 20031); do
		echo flow > "/dev/udp/$GUEST_IP/$port"
	done
	eventually rx_more "$before" 5
	after=$(queue_work mq rx)
	[[ $1 = 4 ]] || same "$1 of 4 pairs: the others receive nothing" \
		"$(paste <(echo "$before") <(echo "$after") | awk -v n="$1" 'NR > n && $1 != $2' | wc -l)" 0
}

# rx_more BEFORE N: so many more interrupts came, of all queues
rx_more()
{
	[[ $(queue_work mq rx | awk '{ n += $1 } END { print n }') -ge \
		$(($(awk '{ n += $1 } END { print n }' <<< "$1") + $2)) ]]
}

changes()
{
	local pid result=0

	iperf_serve mq
	(iperf_run -t 30 -P 4 || { echo "$REPLY"; exit 1; }) > "$WORK/changes" & pid=$!
	check "$CHANGES times ethtool -L combined 1 and 4 under load" guest mq \
		"for i in \$(seq $CHANGES); do ethtool -L eth0 combined 1 && sleep 0.5 && ethtool -L eth0 combined 4 && sleep 0.5 || break; done; [ \$i = $CHANGES ]"
	wait "$pid" || result=$? # here, not in a subshell, whose child it is not
	same "the transfer meanwhile: its status" "$result" 0
	diag < "$WORK/changes"
}

# Without a word from the user; and in a tap that has one queue, or several
default()
{
	ip tuntap add dev e2e1 mode tap
	ip tuntap add dev e2e4 mode tap multi_queue
	vm_start default -m 256 -c 2 -n mode=tap,tapif=e2e4,host_ip="$HOST_IP"
	vm_up default || return
	same "-c 2, a tap of several queues: two pairs" "$(channels default | head -n 1)" 2
	check "-c 2, a tap of several queues: the guest receives" iperf default -n 16M -P 4
	vm_stop default
	check "a tap of one queue: one pair" one_pair
	"$LKVM" run -k "$GUEST/kernel" -n mode=tap,tapif=e2e1,queues=2 2> "$WORK/refused" < /dev/null
	same "a tap of one queue, queues=2: refused" $? 125
	check "a tap of one queue, queues=2: the reason" grep -q "queues=2: tap e2e1 has one queue" "$WORK/refused"
	ip link del e2e1
	ip link del e2e4
}

one_pair()
{
	vm_start one -m 256 -c 2 -n mode=tap,vhost=1,tapif=e2e1,host_ip="$HOST_IP"
	vm_up one && [[ $(channels one | head -n 1) = 1 && $(workers one) = 1 ]]
	local failed=$?
	vm_stop one
	return $failed
}

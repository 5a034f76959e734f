# shellcheck shell=bash disable=SC2016 # text for another program to expand
# SPDX-License-Identifier: GPL-2.0-only
#
# The ways in which a guest reaches its NIC that are not PCI with MSI-X.
#
# groups: mmio=60 nomsi=25 legacy=60

# virtio-mmio, found by ACPI
mmio()
{
	local vhost vm

	for vhost in 0 1; do
		vm=mmio$vhost
		vm_start "$vm" -m 256 --virtio-transport mmio -n "mode=tap,vhost=$vhost,tapif=e2e0"
		vm_up "$vm" || return
		guest_out "$vm" 'basename $(readlink -f /sys/class/net/eth0/device/..)'
		same "mmio vhost=$vhost: the NIC is ACPI's first slot" "$REPLY" LNRO0005:00
		guest_out "$vm" 'ls -d /sys/bus/platform/devices/LNRO0005* | wc -l; cat /sys/bus/pci/devices/*/vendor | grep -c 0x1af4'
		same "mmio vhost=$vhost: no other slot holds a device, and PCI has none" "$REPLY" $'1\n0'
		same "mmio vhost=$vhost: VIRTIO_F_VERSION_1 is negotiated" "$(feature "$vm" 32)" 1
		on_pin "mmio vhost=$vhost" "$vm"
		used "mmio vhost=$vhost" "$vm"
		rebind_driver "mmio vhost=$vhost" "$vm" /sys/bus/platform/drivers/virtio-mmio
		vm_stop "$vm"
		same "mmio vhost=$vhost: poweroff" "$STATUS" 0
	done
}

# The device of before virtio 1.0, which Debian's kernel still has a driver for. With more memory than fits
# below 4 GiB, so that page numbers of rings need more than 20 bits.
legacy()
{
	local vhost vm

	for vhost in 0 1; do
		vm=legacy$vhost
		vm_start "$vm" -m $((vhost ? 6144 : 256)) --virtio-transport pci-legacy -n "mode=tap,vhost=$vhost,tapif=e2e0"
		vm_up "$vm" || return
		guest_out "$vm" 'cd -P /sys/class/net/eth0/device/..; cat device revision'
		same "legacy vhost=$vhost: IDs of a legacy NIC" "$REPLY" $'0x1000\n0x00'
		same "legacy vhost=$vhost: no VIRTIO_F_VERSION_1" "$(feature "$vm" 32)" 0
		guest_out "$vm" 'grep -cE "MSI.*virtio0-(in|out)put" /proc/interrupts'
		same "legacy vhost=$vhost: both queues have an MSI-X vector" "$REPLY" 2
		used "legacy vhost=$vhost" "$vm"
		rebind_driver "legacy vhost=$vhost" "$vm" /sys/bus/pci/drivers/virtio-pci
		vm_stop "$vm"
		same "legacy vhost=$vhost: poweroff" "$STATUS" 0
	done
}

# PCI without MSI-X: vhost's interrupts go through lkvm
nomsi()
{
	CMDLINE+=" pci=nomsi"
	vm_start nomsi -m 256 -n mode=tap,vhost=1,tapif=e2e0
	vm_up nomsi || return
	on_pin "pci=nomsi vhost=1" nomsi
	used "pci=nomsi vhost=1" nomsi
	rebind_driver "pci=nomsi vhost=1" nomsi /sys/bus/pci/drivers/virtio-pci
	vm_stop nomsi
	same "pci=nomsi vhost=1: poweroff" "$STATUS" 0
}

feature() # VM BIT
{
	guest_out "$1" 'cat /sys/class/net/eth0/device/features'
	echo "${REPLY:$2:1}"
}

on_pin() # TEST VM
{
	guest_out "$2" 'grep virtio0 /proc/interrupts'
	check "$1: one interrupt, a level on a pin of the I/O APIC" \
		grep -qE '^ *[0-9]+: .*IO-APIC +[0-9]+-fasteoi +virtio0$' <<< "$REPLY"
	[[ $(wc -l <<< "$REPLY") = 1 ]] || diag <<< "$REPLY"
}

used() # TEST VM
{
	check "$1: ping from the guest" guest "$2" "ping -c 3 -W 20 $HOST_IP"
	check "$1: the guest receives" iperf "$2" -n 8M
	check "$1: the guest sends" iperf "$2" -n 8M -R
	[[ -n ${VMM:-} ]] || same "$1: no doorbell left the kernel" \
		"$(stat_of "$2" '[.devices[] | select(.type == "net") | .queues[].doorbell_exits] | add')" 0
	guest_out "$2" 'dmesg | grep -iE "nobody cared|Disabling IRQ|virtio.*(error|fail|broken)"'
	same "$1: the kernel does not complain" "$REPLY" ""
}

# From the device on, and with the interrupt line used again
rebind_driver() # TEST VM DRIVER
{
	guest_out "$2" 'p=$(basename $(readlink -f /sys/class/net/eth0/device/..))'
	check "$1: the driver is bound again" guest "$2" \
		"cd $3; "'for i in 1 2 3; do echo $p > unbind && echo $p > bind || break; done; ls; [ -e $p/virtio*/net/eth0 -a $i = 3 ]'
	guest_out "$2" "ip addr add $GUEST_IP/24 dev eth0 && ip link set eth0 up" || diag <<< "$REPLY"
	check "$1: ping after that" guest "$2" "ping -c 3 -W 20 $HOST_IP"
	check "$1: the guest receives after that" iperf "$2" -n 8M
}

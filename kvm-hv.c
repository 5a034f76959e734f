// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hypervisor seam over KVM's ioctls.
 *
 * KVM replaces the whole GSI routing table at once (KVM api.rst 4.52), so a copy of all routes is
 * kept here under a lock: the interrupt controllers' pins, which the architecture lists, and the
 * MSI messages.
 */
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include "arch.h"
#include "log.h"
#include "vm.h"

#define MAX_PIN_ROUTES 64

struct kvm_hv {
	struct hv hv;
	int vm_fd;
	pthread_mutex_t lock; /* innermost */
	bool routed[HV_MAX_GSI];
	struct msi_msg msg[HV_MAX_GSI];
};

static struct kvm_hv *to_khv(struct hv *hv)
{
	return container_of(hv, struct kvm_hv, hv);
}

static int hv_irq_line(struct hv *hv, u32 gsi, bool level)
{
	struct kvm_irq_level irq = { .irq = gsi, .level = level };

	return ioctl(to_khv(hv)->vm_fd, KVM_IRQ_LINE, &irq) ? -errno : 0;
}

static int hv_irqfd(struct hv *hv, u32 gsi, int fd, int resamplefd, bool on)
{
	struct kvm_irqfd irqfd = {
		.fd = (u32)fd,
		.gsi = gsi,
		.flags = on ? 0 : KVM_IRQFD_FLAG_DEASSIGN,
	};

	if (on && resamplefd >= 0) {
		irqfd.flags |= KVM_IRQFD_FLAG_RESAMPLE;
		irqfd.resamplefd = (u32)resamplefd;
	}
	return ioctl(to_khv(hv)->vm_fd, KVM_IRQFD, &irqfd) ? -errno : 0;
}

/* Lock held. */
static int routes_commit(struct kvm_hv *khv)
{
	struct kvm_irq_routing *table;
	unsigned n;
	int err;

	table = calloc(1,
		       sizeof(*table) + (MAX_PIN_ROUTES + HV_MAX_GSI) * sizeof(table->entries[0]));
	if (!table)
		return -ENOMEM;
	n = arch_irq_routes(table->entries, MAX_PIN_ROUTES);
	for (u32 gsi = 0; gsi < HV_MAX_GSI; gsi++) {
		if (!khv->routed[gsi])
			continue;
		table->entries[n++] = (struct kvm_irq_routing_entry){
			.gsi = gsi,
			.type = KVM_IRQ_ROUTING_MSI,
			.u.msi.address_lo = (u32)khv->msg[gsi].addr,
			.u.msi.address_hi = (u32)(khv->msg[gsi].addr >> 32),
			.u.msi.data = khv->msg[gsi].data,
		};
	}
	table->nr = n;
	err = ioctl(khv->vm_fd, KVM_SET_GSI_ROUTING, table) ? -errno : 0;
	free(table);
	return err;
}

static int hv_msi_route(struct hv *hv, u32 gsi, const struct msi_msg *msg)
{
	struct kvm_hv *khv = to_khv(hv);
	struct msi_msg was;
	bool was_routed;
	int err;

	if (gsi >= HV_MAX_GSI)
		return -EINVAL;
	pthread_mutex_lock(&khv->lock);
	was_routed = khv->routed[gsi];
	was = khv->msg[gsi];
	khv->routed[gsi] = msg != NULL;
	if (msg)
		khv->msg[gsi] = *msg;
	err = routes_commit(khv);
	if (err) {
		khv->routed[gsi] = was_routed;
		khv->msg[gsi] = was;
	}
	pthread_mutex_unlock(&khv->lock);
	return err;
}

static int hv_ioeventfd(struct hv *hv, const struct doorbell *db, int fd, bool on)
{
	/* Length 0: any width, and on MMIO KVM looks it up without decoding the instruction. */
	struct kvm_ioeventfd io = {
		.datamatch = db->match ? db->value : 0,
		.addr = db->addr,
		.len = db->match ? db->len : 0,
		.fd = fd,
		.flags = (db->pio ? KVM_IOEVENTFD_FLAG_PIO : 0U) |
			 (db->match ? KVM_IOEVENTFD_FLAG_DATAMATCH : 0U) |
			 (on ? 0U : KVM_IOEVENTFD_FLAG_DEASSIGN),
	};

	return ioctl(to_khv(hv)->vm_fd, KVM_IOEVENTFD, &io) ? -errno : 0;
}

static const struct hv_ops kvm_ops = {
	.irq_line = hv_irq_line,
	.irqfd = hv_irqfd,
	.msi_route = hv_msi_route,
	.ioeventfd = hv_ioeventfd,
};

struct kvm_hv *kvm_hv_new(int vm_fd)
{
	struct kvm_hv *khv = calloc(1, sizeof(*khv));

	if (!khv)
		return NULL;
	khv->hv.ops = &kvm_ops;
	khv->vm_fd = vm_fd;
	pthread_mutex_init(&khv->lock, NULL);
	hv_gsi_init(&khv->hv, arch_first_msi_gsi());
	return khv;
}

int kvm_hv_rebase(struct kvm_hv *khv, int vm_fd)
{
	int err;

	pthread_mutex_lock(&khv->lock);
	khv->vm_fd = vm_fd;
	err = routes_commit(khv);
	pthread_mutex_unlock(&khv->lock);
	return err;
}

struct hv *kvm_hv_base(struct kvm_hv *khv)
{
	return &khv->hv;
}

void kvm_hv_free(struct kvm_hv *khv)
{
	if (!khv)
		return;
	hv_gsi_destroy(&khv->hv);
	pthread_mutex_destroy(&khv->lock);
	free(khv);
}

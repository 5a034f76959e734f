// SPDX-License-Identifier: GPL-2.0-only
/* MSI-X. Theory of operation: include/hw/msix.h. */
#include <linux/pci_regs.h>
#include <poll.h>

#include "hw/msix.h"
#include "hw/pci.h"
#include "log.h"

#define ENTRY_SIZE  16
#define CTRL_WORD   3
#define CTRL_MASKED 1u
#define PBA_SIZE    8 /* bytes: 64 vectors */

static bool vector_on(const struct msix *msix, unsigned v)
{
	return msix->enabled && !msix->masked && !(msix->vec[v].entry[CTRL_WORD] & CTRL_MASKED);
}

static bool vector_bound(const struct msix *msix, unsigned v)
{
	for (unsigned s = 0; s < msix->nr_sources; s++) {
		if (msix->src[s].fd >= 0 && msix->src[s].vector == v)
			return true;
	}
	return false;
}

/* Gives the vector a GSI and makes the GSI's route say what the table says. */
static int vector_route(struct msix *msix, unsigned v)
{
	struct msix_vector *vec = &msix->vec[v];
	struct msi_msg msg = {
		.addr = vec->entry[0] | (u64)vec->entry[1] << 32,
		.data = vec->entry[2],
	};
	int err;

	if (vec->routed && vec->msg.addr == msg.addr && vec->msg.data == msg.data)
		return 0;
	if (!vec->routed) {
		int gsi = hv_gsi_alloc(msix->hv);

		if (gsi < 0)
			return gsi;
		vec->gsi = (u32)gsi;
	}
	err = msix->hv->ops->msi_route(msix->hv, vec->gsi, &msg);
	if (err) {
		if (!vec->routed)
			hv_gsi_free(msix->hv, vec->gsi);
		return err;
	}
	vec->msg = msg;
	vec->routed = true;
	return 0;
}

static int source_set(struct msix *msix, struct msix_source *src, bool on)
{
	int err;

	if (src->live == on)
		return 0;
	err = msix->hv->ops->irqfd(msix->hv, msix->vec[src->vector].gsi, src->fd, -1, on);
	if (!err)
		src->live = on;
	return err;
}

/* Makes route and irqfds of vector @v what table, control word and binds ask for. Idempotent. */
static int msix_sync(struct msix *msix, unsigned v)
{
	bool on = vector_on(msix, v) && vector_bound(msix, v);
	int err = on ? vector_route(msix, v) : 0;

	for (unsigned s = 0; s < msix->nr_sources && !err; s++) {
		if (msix->src[s].fd >= 0 && msix->src[s].vector == v)
			err = source_set(msix, &msix->src[s], on);
	}
	if (err) {
		msix->error = err;
		log_warn_once("MSI-X vector %u: %s; its interrupts are lost", v, strerror(-err));
	}
	return err;
}

static void msix_sync_all(struct msix *msix)
{
	for (unsigned v = 0; v < msix->nr_vectors; v++)
		msix_sync(msix, v);
}

/* --- table and pending bits --- */

/* Pending: signalled while it could not be delivered. The signal still sits in the eventfd. */
static bool vector_pending(const struct msix *msix, unsigned v)
{
	for (unsigned s = 0; s < msix->nr_sources; s++) {
		const struct msix_source *src = &msix->src[s];
		struct pollfd pfd = { .fd = src->fd, .events = POLLIN };

		if (src->fd >= 0 && src->vector == v && !src->live && poll(&pfd, 1, 0) == 1)
			return true;
	}
	return false;
}

static void pba_read(const struct msix *msix, u8 *pba)
{
	memset(pba, 0, PBA_SIZE);
	for (unsigned v = 0; v < msix->nr_vectors; v++) {
		if (vector_pending(msix, v))
			pba[v / 8] |= (u8)BIT(v % 8);
	}
}

static void msix_bar_read(void *opaque, u64 off, void *data, unsigned len)
{
	struct msix *msix = opaque;
	u8 pba[PBA_SIZE], *out = data;

	pthread_mutex_lock(&msix->lock);
	if (off + len > MSIX_TABLE_SIZE)
		pba_read(msix, pba);
	for (unsigned i = 0; i < len; i++) {
		u64 at = off + i;

		if (at < msix->nr_vectors * ENTRY_SIZE)
			out[i] = ((const u8 *)msix->vec[at / ENTRY_SIZE].entry)[at % ENTRY_SIZE];
		else if (at >= MSIX_TABLE_SIZE && at < MSIX_TABLE_SIZE + PBA_SIZE)
			out[i] = pba[at - MSIX_TABLE_SIZE];
		else
			out[i] = 0;
	}
	pthread_mutex_unlock(&msix->lock);
}

static void msix_bar_write(void *opaque, u64 off, const void *data, unsigned len)
{
	struct msix *msix = opaque;
	const u8 *in = data;
	u64 end = MIN(off + len, (u64)msix->nr_vectors * ENTRY_SIZE);

	pthread_mutex_lock(&msix->lock);
	for (u64 at = off; at < end; at++)
		((u8 *)msix->vec[at / ENTRY_SIZE].entry)[at % ENTRY_SIZE] = in[at - off];
	for (u64 at = off; at < end; at = (at / ENTRY_SIZE + 1) * ENTRY_SIZE) {
		msix->vec[at / ENTRY_SIZE].entry[CTRL_WORD] &= CTRL_MASKED;
		msix_sync(msix, (unsigned)(at / ENTRY_SIZE));
	}
	pthread_mutex_unlock(&msix->lock);
}

static const struct bus_ops msix_bar_ops = { .read = msix_bar_read, .write = msix_bar_write };

/* --- for the device --- */

int msix_init(struct msix *msix, struct pci_dev *pci, struct hv *hv, unsigned bar,
	      unsigned nr_vectors, unsigned nr_sources)
{
	/* PCI 3.0 6.8.2: ID, next, control, table offset | BAR, PBA offset | BAR */
	struct {
		u8 id, next;
		u16 control;
		u32 table, pba;
	} cap = { .control = (u16)(nr_vectors - 1), .table = bar, .pba = MSIX_TABLE_SIZE | bar };

	if (!nr_vectors || nr_vectors > MSIX_MAX_VECTORS || !nr_sources ||
	    nr_sources > MSIX_MAX_SOURCES)
		return -EINVAL;
	memset(msix, 0, sizeof(*msix));
	pthread_mutex_init(&msix->lock, NULL);
	msix->hv = hv;
	msix->pci = pci;
	msix->nr_vectors = nr_vectors;
	msix->nr_sources = nr_sources;
	msix->cap = pci_dev_cap(pci, PCI_CAP_ID_MSIX, &cap, sizeof(cap));
	pci->wmask[msix->cap + PCI_MSIX_FLAGS + 1] =
		(PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8;
	pci_dev_bar(pci, bar, MSIX_BAR_SIZE, false, &msix_bar_ops, msix);
	for (unsigned v = 0; v < nr_vectors; v++)
		msix->vec[v].entry[CTRL_WORD] = CTRL_MASKED;
	for (unsigned s = 0; s < nr_sources; s++)
		msix->src[s].fd = -1;
	return 0;
}

bool msix_cfg_write(struct msix *msix, unsigned off, unsigned len)
{
	unsigned reg = msix->cap + PCI_MSIX_FLAGS + 1; /* the byte with both bits */
	bool enabled, masked, changed;

	if (off > reg || off + len <= reg)
		return false;
	enabled = msix->pci->cfg[reg] & PCI_MSIX_FLAGS_ENABLE >> 8;
	masked = msix->pci->cfg[reg] & PCI_MSIX_FLAGS_MASKALL >> 8;
	pthread_mutex_lock(&msix->lock);
	changed = enabled != msix->enabled;
	if (changed || masked != msix->masked) {
		msix->enabled = enabled;
		msix->masked = masked;
		msix_sync_all(msix);
	}
	pthread_mutex_unlock(&msix->lock);
	return changed;
}

static void source_unbind(struct msix *msix, struct msix_source *src)
{
	if (src->fd < 0)
		return;
	source_set(msix, src, false);
	src->fd = -1;
	src->live = false;
}

int msix_bind(struct msix *msix, unsigned source, u16 vector, int fd)
{
	struct msix_source *src;
	int err = 0;

	if (source >= msix->nr_sources || (vector >= msix->nr_vectors && vector != MSIX_NO_VECTOR))
		return -EINVAL;
	src = &msix->src[source];
	pthread_mutex_lock(&msix->lock);
	source_unbind(msix, src);
	src->fd = fd;
	src->vector = vector;
	if (vector != MSIX_NO_VECTOR) {
		err = msix_sync(msix, vector);
		if (err)
			source_unbind(msix, src);
	}
	pthread_mutex_unlock(&msix->lock);
	return err;
}

void msix_unbind(struct msix *msix, unsigned source)
{
	if (source >= msix->nr_sources)
		return;
	pthread_mutex_lock(&msix->lock);
	source_unbind(msix, &msix->src[source]);
	pthread_mutex_unlock(&msix->lock);
}

void msix_reset(struct msix *msix)
{
	pthread_mutex_lock(&msix->lock);
	for (unsigned s = 0; s < msix->nr_sources; s++)
		source_unbind(msix, &msix->src[s]);
	for (unsigned v = 0; v < msix->nr_vectors; v++) {
		memset(msix->vec[v].entry, 0, sizeof(msix->vec[v].entry));
		msix->vec[v].entry[CTRL_WORD] = CTRL_MASKED;
	}
	pthread_mutex_unlock(&msix->lock);
}

void msix_free(struct msix *msix)
{
	if (!msix->hv)
		return;
	for (unsigned s = 0; s < msix->nr_sources; s++)
		source_unbind(msix, &msix->src[s]);
	for (unsigned v = 0; v < msix->nr_vectors; v++) {
		if (!msix->vec[v].routed)
			continue;
		msix->hv->ops->msi_route(msix->hv, msix->vec[v].gsi, NULL);
		hv_gsi_free(msix->hv, msix->vec[v].gsi);
	}
	pthread_mutex_destroy(&msix->lock);
	msix->hv = NULL;
}

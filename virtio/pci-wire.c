// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wires of the PCI transports: doorbell -> kick, call -> interrupt.
 *
 * Theory of operation: each doorbell of a ready queue is an ioeventfd on vq->kick; where queues
 * share an address, as on legacy devices, for a write of its index only, else for any write. BARs
 * move while the device runs: the doorbells of a BAR leave with it and come back where it lands;
 * backends are not told.
 *
 * With MSI-X enabled vq->call is bound to the queue's vector and we never see it. With INTx it is a
 * source of our loop, which sets the ISR bit and raises the line. Enabling MSI-X moves the wires of
 * running queues; a signal that is pending in an eventfd moves with it. Locks: virtio/pci.h.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "log.h"
#include "virtio/pci.h"

static struct virtio_pci *to_pci(struct virtio_transport *tp)
{
	return container_of(tp, struct virtio_pci, tp);
}

/* --- call side --- */

/* irq_lock held: the line is up while a bit is unread, but for MSI-X. */
static void intx_update(struct virtio_pci *p)
{
	pci_intx(&p->pci, !p->msix_on && atomic_load(&p->tp.dev->isr));
}

static void intx_raise(struct virtio_pci *p, u8 bit)
{
	atomic_fetch_or(&p->tp.dev->isr, bit);
	intx_update(p);
}

/* The counter is taken only while the source is ours: else the signal belongs to the irqfd. */
static void on_call(struct loop_src *src, u32 events)
{
	struct pci_queue *q = container_of(src, struct pci_queue, call);
	u64 count;

	(void)events;
	pthread_mutex_lock(&q->p->irq_lock);
	if (q->intx && read(src->fd, &count, sizeof(count)) == sizeof(count))
		intx_raise(q->p, VIRTIO_ISR_QUEUE);
	pthread_mutex_unlock(&q->p->irq_lock);
}

static void set_intx(struct pci_queue *q, bool on)
{
	pthread_mutex_lock(&q->p->irq_lock);
	q->intx = on;
	pthread_mutex_unlock(&q->p->irq_lock);
}

static int wire_call(struct pci_queue *q)
{
	struct virtio_pci *p = q->p;
	int r;

	if (p->msix_on)
		return msix_bind(&p->msix, q->vq->index, q->vector, q->vq->call);
	set_intx(q, true);
	r = loop_add(p->tp.dev->m->loop, &q->call, EPOLLIN);
	if (r)
		set_intx(q, false);
	return r;
}

static void unwire_call(struct pci_queue *q)
{
	struct virtio_pci *p = q->p;

	msix_unbind(&p->msix, q->vq->index);
	if (!q->intx)
		return;
	loop_del(p->tp.dev->m->loop, &q->call);
	set_intx(q, false);
}

/* --- kick side --- */

static int wire_bell(struct pci_queue *q, unsigned b)
{
	struct virtio_pci *p = q->p;
	const struct pci_bells *bells = &p->bells[b];
	struct hv *hv = p->tp.dev->m->hv;
	int r;

	if (!bells->there || !p->bar[bells->bar].mapped || q->bell[b].live)
		return 0;
	q->bell[b].db = (struct doorbell){
		.addr = p->bar[bells->bar].addr + bells->off + q->vq->index * bells->stride,
		.pio = bells->io,
		.match = bells->match != 0,
		.len = bells->match,
		.value = q->vq->index,
	};
	r = hv->ops->ioeventfd(hv, &q->bell[b].db, q->vq->kick, true);
	q->bell[b].live = !r;
	return r;
}

static void unwire_bell(struct pci_queue *q, unsigned b)
{
	struct hv *hv = q->p->tp.dev->m->hv;

	if (q->bell[b].live)
		hv->ops->ioeventfd(hv, &q->bell[b].db, q->vq->kick, false);
	q->bell[b].live = false;
}

void virtio_pci_doorbell(struct virtio_pci *p, u64 i)
{
	struct virtio_device *dev = p->tp.dev;
	u64 one = 1;

	if (i >= dev->nr_vqs)
		return;
	dev->vq[i].nr_doorbells++;
	if (dev->started && dev->vq[i].ready && write(dev->vq[i].kick, &one, sizeof(one)) < 0)
		log_debug("virtio-pci: doorbell: %s", strerror(errno));
}

/* --- the core's hooks --- */

static void pci_unwire(struct virtio_transport *tp, struct virtq *vq)
{
	struct pci_queue *q = &to_pci(tp)->q[vq->index];

	for (unsigned b = 0; b < NR_BELLS; b++)
		unwire_bell(q, b);
	unwire_call(q);
	q->wired = false;
}

/* What the hypervisor refused when the driver set the vectors up: there would be no interrupts. */
static int take_msix_error(struct msix *msix)
{
	int error;

	pthread_mutex_lock(&msix->lock);
	error = msix->error;
	msix->error = 0;
	pthread_mutex_unlock(&msix->lock);
	return error;
}

static int pci_wire(struct virtio_transport *tp, struct virtq *vq)
{
	struct pci_queue *q = &to_pci(tp)->q[vq->index];
	int r = wire_call(q);

	q->wired = true;
	for (unsigned b = 0; b < NR_BELLS && !r; b++)
		r = wire_bell(q, b);
	return r ? r : take_msix_error(&to_pci(tp)->msix);
}

/*
 * virtio 1.3 4.1.4.5.1, 4.1.5.1.4: the ISR bit is set in any case, the interrupt is one or the
 * other. Without a vector there is none, and none that waits for a vector either.
 */
static void pci_config_irq(struct virtio_transport *tp)
{
	struct virtio_pci *p = to_pci(tp);
	u64 one = 1;

	pthread_mutex_lock(&p->irq_lock);
	intx_raise(p, VIRTIO_ISR_CONFIG);
	pthread_mutex_unlock(&p->irq_lock);
	if (p->msix_on && p->config_vector != MSIX_NO_VECTOR &&
	    write(p->config_call, &one, sizeof(one)) < 0)
		log_debug("virtio-pci: config interrupt: %s", strerror(errno));
}

static void pci_reset(struct virtio_transport *tp)
{
	struct virtio_pci *p = to_pci(tp);
	u64 count;

	msix_unbind(&p->msix, tp->dev->nr_vqs);
	take_msix_error(&p->msix);
	if (read(p->config_call, &count, sizeof(count)) < 0)
		count = 0; /* none was pending */
	p->config_vector = MSIX_NO_VECTOR;
	for (unsigned i = 0; i < tp->dev->nr_vqs; i++)
		p->q[i].vector = MSIX_NO_VECTOR;
	p->device_feature_select = p->driver_feature_select = 0;
	p->queue_select = 0;
	pthread_mutex_lock(&p->irq_lock);
	atomic_store(&tp->dev->isr, 0);
	intx_update(p);
	pthread_mutex_unlock(&p->irq_lock);
}

void virtio_pci_wires_init(struct virtio_pci *p)
{
	struct virtio_device *dev = p->tp.dev;

	pthread_mutex_init(&p->irq_lock, NULL);
	p->config_vector = MSIX_NO_VECTOR;
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		struct pci_queue *q = &p->q[i];

		*q = (struct pci_queue){ .p = p, .vq = &dev->vq[i], .vector = MSIX_NO_VECTOR };
		q->call.fd = q->vq->call;
		q->call.fn = on_call;
		q->call.name = dev->ops->name;
	}
}

static void pci_free(struct virtio_transport *tp)
{
	struct virtio_pci *p = to_pci(tp);

	pci_dev_del(&p->pci);
	msix_free(&p->msix);
	pthread_mutex_destroy(&p->irq_lock);
	if (p->config_call >= 0)
		close(p->config_call);
	tp->dev->tp = NULL;
	free(p);
}

const struct virtio_transport_ops virtio_pci_ops = {
	.name = "pci",
	.wire = pci_wire,
	.unwire = pci_unwire,
	.config_irq = pci_config_irq,
	.reset = pci_reset,
	.free = pci_free,
};

const struct virtio_transport_ops virtio_pci_legacy_ops = {
	.name = "pci-legacy",
	.legacy = true,
	.wire = pci_wire,
	.unwire = pci_unwire,
	.config_irq = pci_config_irq,
	.reset = pci_reset,
	.free = pci_free,
};

/* --- vectors --- */

static u16 valid_vector(const struct virtio_pci *p, u64 vector)
{
	return vector < p->msix.nr_vectors ? (u16)vector : MSIX_NO_VECTOR;
}

void virtio_pci_set_config_vector(struct virtio_pci *p, u64 vector)
{
	p->config_vector = valid_vector(p, vector);
	if (msix_bind(&p->msix, p->tp.dev->nr_vqs, p->config_vector, p->config_call))
		p->config_vector = MSIX_NO_VECTOR;
}

void virtio_pci_set_queue_vector(struct pci_queue *q, u64 vector)
{
	q->vector = valid_vector(q->p, vector);
	if (!q->wired || !q->p->msix_on)
		return;
	if (msix_bind(&q->p->msix, q->vq->index, q->vector, q->vq->call))
		q->vector = MSIX_NO_VECTOR;
}

u8 virtio_pci_isr_read(struct virtio_pci *p)
{
	u8 isr;

	pthread_mutex_lock(&p->irq_lock);
	isr = atomic_exchange(&p->tp.dev->isr, 0);
	intx_update(p);
	pthread_mutex_unlock(&p->irq_lock);
	return isr;
}

/* --- what moves wires --- */

void virtio_pci_bar_moved(struct pci_dev *pci, unsigned bar, bool mapped)
{
	struct virtio_pci *p = container_of(pci, struct virtio_pci, pci);
	struct virtio_device *dev = p->tp.dev;
	int r = 0;

	pthread_mutex_lock(&dev->lock);
	p->bar[bar].addr = pci->bar[bar].addr;
	p->bar[bar].mapped = mapped;
	for (unsigned i = 0; i < dev->nr_vqs; i++) {
		for (unsigned b = 0; b < NR_BELLS; b++) {
			if (!p->q[i].wired || p->bells[b].bar != bar)
				continue;
			unwire_bell(&p->q[i], b);
			r = r ? r : wire_bell(&p->q[i], b);
		}
	}
	if (r)
		virtio_broken(dev, "cannot move a doorbell");
	pthread_mutex_unlock(&dev->lock);
}

void virtio_pci_msix_switched(struct virtio_pci *p)
{
	struct virtio_device *dev = p->tp.dev;
	int r = 0;

	for (unsigned i = 0; i < dev->nr_vqs; i++)
		if (p->q[i].wired)
			unwire_call(&p->q[i]);
	pthread_mutex_lock(&p->irq_lock);
	p->msix_on = !p->msix_on;
	intx_update(p);
	pthread_mutex_unlock(&p->irq_lock);
	for (unsigned i = 0; i < dev->nr_vqs && !r; i++)
		if (p->q[i].wired)
			r = wire_call(&p->q[i]);
	if (r)
		virtio_broken(dev, "cannot move an interrupt to or from MSI-X");
}

// SPDX-License-Identifier: GPL-2.0-only
/* GSIs for MSI routes: a bitmap above the interrupt controller's pins. */
#include "hv.h"

void hv_gsi_init(struct hv *hv, u32 first)
{
	pthread_mutex_init(&hv->gsi_lock, NULL);
	hv->gsi_first = first;
	memset(hv->gsi_used, 0, sizeof(hv->gsi_used));
}

void hv_gsi_destroy(struct hv *hv)
{
	pthread_mutex_destroy(&hv->gsi_lock);
}

int hv_gsi_alloc(struct hv *hv)
{
	int gsi = -ENOSPC;

	pthread_mutex_lock(&hv->gsi_lock);
	for (u32 i = hv->gsi_first; i < HV_MAX_GSI; i++) {
		if (hv->gsi_used[i / 64] & BIT(i % 64))
			continue;
		hv->gsi_used[i / 64] |= BIT(i % 64);
		gsi = (int)i;
		break;
	}
	pthread_mutex_unlock(&hv->gsi_lock);
	return gsi;
}

void hv_gsi_free(struct hv *hv, u32 gsi)
{
	if (gsi >= HV_MAX_GSI)
		return;
	pthread_mutex_lock(&hv->gsi_lock);
	hv->gsi_used[gsi / 64] &= ~BIT(gsi % 64);
	pthread_mutex_unlock(&hv->gsi_lock);
}

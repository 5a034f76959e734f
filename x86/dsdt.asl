// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the guest's kernel cannot find out by itself: the same for every guest, so it is compiled
 * when lkvm is. Addresses are those of include/x86.h; PCI devices are found by their config space.
 */
DefinitionBlock ("", "DSDT", 2, "LKVM", "LKVMDSDT", 1)
{
	// Power off: SLP_TYP 5 (POWER_S5 of hw/legacy.h) to the sleep control register.
	Name (\_S5, Package () { 5, 0, 0, 0 })

	Scope (\_SB)
	{
		Device (PCI0)
		{
			Name (_HID, EisaId ("PNP0A08"))
			Name (_CID, EisaId ("PNP0A03"))
			Name (_SEG, 0)
			Name (_BBN, 0)
			Name (_UID, 0)
			Name (_CRS, ResourceTemplate ()
			{
				WordBusNumber (ResourceProducer, MinFixed, MaxFixed, PosDecode,
					0, 0, 0, 0, 1)
				IO (Decode16, 0x0cf8, 0x0cf8, 1, 8)
				WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange,
					0, 0x1000, 0xffff, 0, 0xf000)
				DWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, NonCacheable,
					ReadWrite, 0, 0xc0000000, 0xdfffffff, 0, 0x20000000)
			})

			// Lines INTA to INTD of slot N: GSI 16 + (N + line) % 4, hardwired.
			Name (_PRT, Package ()
			{
				Package () { 0x0001ffff, 0, 0, 17 }, Package () { 0x0001ffff, 1, 0, 18 },
				Package () { 0x0001ffff, 2, 0, 19 }, Package () { 0x0001ffff, 3, 0, 16 },
				Package () { 0x0002ffff, 0, 0, 18 }, Package () { 0x0002ffff, 1, 0, 19 },
				Package () { 0x0002ffff, 2, 0, 16 }, Package () { 0x0002ffff, 3, 0, 17 },
				Package () { 0x0003ffff, 0, 0, 19 }, Package () { 0x0003ffff, 1, 0, 16 },
				Package () { 0x0003ffff, 2, 0, 17 }, Package () { 0x0003ffff, 3, 0, 18 },
				Package () { 0x0004ffff, 0, 0, 16 }, Package () { 0x0004ffff, 1, 0, 17 },
				Package () { 0x0004ffff, 2, 0, 18 }, Package () { 0x0004ffff, 3, 0, 19 },
				Package () { 0x0005ffff, 0, 0, 17 }, Package () { 0x0005ffff, 1, 0, 18 },
				Package () { 0x0005ffff, 2, 0, 19 }, Package () { 0x0005ffff, 3, 0, 16 },
				Package () { 0x0006ffff, 0, 0, 18 }, Package () { 0x0006ffff, 1, 0, 19 },
				Package () { 0x0006ffff, 2, 0, 16 }, Package () { 0x0006ffff, 3, 0, 17 },
				Package () { 0x0007ffff, 0, 0, 19 }, Package () { 0x0007ffff, 1, 0, 16 },
				Package () { 0x0007ffff, 2, 0, 17 }, Package () { 0x0007ffff, 3, 0, 18 },
				Package () { 0x0008ffff, 0, 0, 16 }, Package () { 0x0008ffff, 1, 0, 17 },
				Package () { 0x0008ffff, 2, 0, 18 }, Package () { 0x0008ffff, 3, 0, 19 },
				Package () { 0x0009ffff, 0, 0, 17 }, Package () { 0x0009ffff, 1, 0, 18 },
				Package () { 0x0009ffff, 2, 0, 19 }, Package () { 0x0009ffff, 3, 0, 16 },
				Package () { 0x000affff, 0, 0, 18 }, Package () { 0x000affff, 1, 0, 19 },
				Package () { 0x000affff, 2, 0, 16 }, Package () { 0x000affff, 3, 0, 17 },
				Package () { 0x000bffff, 0, 0, 19 }, Package () { 0x000bffff, 1, 0, 16 },
				Package () { 0x000bffff, 2, 0, 17 }, Package () { 0x000bffff, 3, 0, 18 },
				Package () { 0x000cffff, 0, 0, 16 }, Package () { 0x000cffff, 1, 0, 17 },
				Package () { 0x000cffff, 2, 0, 18 }, Package () { 0x000cffff, 3, 0, 19 },
				Package () { 0x000dffff, 0, 0, 17 }, Package () { 0x000dffff, 1, 0, 18 },
				Package () { 0x000dffff, 2, 0, 19 }, Package () { 0x000dffff, 3, 0, 16 },
				Package () { 0x000effff, 0, 0, 18 }, Package () { 0x000effff, 1, 0, 19 },
				Package () { 0x000effff, 2, 0, 16 }, Package () { 0x000effff, 3, 0, 17 },
				Package () { 0x000fffff, 0, 0, 19 }, Package () { 0x000fffff, 1, 0, 16 },
				Package () { 0x000fffff, 2, 0, 17 }, Package () { 0x000fffff, 3, 0, 18 },
				Package () { 0x0010ffff, 0, 0, 16 }, Package () { 0x0010ffff, 1, 0, 17 },
				Package () { 0x0010ffff, 2, 0, 18 }, Package () { 0x0010ffff, 3, 0, 19 },
				Package () { 0x0011ffff, 0, 0, 17 }, Package () { 0x0011ffff, 1, 0, 18 },
				Package () { 0x0011ffff, 2, 0, 19 }, Package () { 0x0011ffff, 3, 0, 16 },
				Package () { 0x0012ffff, 0, 0, 18 }, Package () { 0x0012ffff, 1, 0, 19 },
				Package () { 0x0012ffff, 2, 0, 16 }, Package () { 0x0012ffff, 3, 0, 17 },
				Package () { 0x0013ffff, 0, 0, 19 }, Package () { 0x0013ffff, 1, 0, 16 },
				Package () { 0x0013ffff, 2, 0, 17 }, Package () { 0x0013ffff, 3, 0, 18 },
				Package () { 0x0014ffff, 0, 0, 16 }, Package () { 0x0014ffff, 1, 0, 17 },
				Package () { 0x0014ffff, 2, 0, 18 }, Package () { 0x0014ffff, 3, 0, 19 },
				Package () { 0x0015ffff, 0, 0, 17 }, Package () { 0x0015ffff, 1, 0, 18 },
				Package () { 0x0015ffff, 2, 0, 19 }, Package () { 0x0015ffff, 3, 0, 16 },
				Package () { 0x0016ffff, 0, 0, 18 }, Package () { 0x0016ffff, 1, 0, 19 },
				Package () { 0x0016ffff, 2, 0, 16 }, Package () { 0x0016ffff, 3, 0, 17 },
				Package () { 0x0017ffff, 0, 0, 19 }, Package () { 0x0017ffff, 1, 0, 16 },
				Package () { 0x0017ffff, 2, 0, 17 }, Package () { 0x0017ffff, 3, 0, 18 },
				Package () { 0x0018ffff, 0, 0, 16 }, Package () { 0x0018ffff, 1, 0, 17 },
				Package () { 0x0018ffff, 2, 0, 18 }, Package () { 0x0018ffff, 3, 0, 19 },
				Package () { 0x0019ffff, 0, 0, 17 }, Package () { 0x0019ffff, 1, 0, 18 },
				Package () { 0x0019ffff, 2, 0, 19 }, Package () { 0x0019ffff, 3, 0, 16 },
				Package () { 0x001affff, 0, 0, 18 }, Package () { 0x001affff, 1, 0, 19 },
				Package () { 0x001affff, 2, 0, 16 }, Package () { 0x001affff, 3, 0, 17 },
				Package () { 0x001bffff, 0, 0, 19 }, Package () { 0x001bffff, 1, 0, 16 },
				Package () { 0x001bffff, 2, 0, 17 }, Package () { 0x001bffff, 3, 0, 18 },
				Package () { 0x001cffff, 0, 0, 16 }, Package () { 0x001cffff, 1, 0, 17 },
				Package () { 0x001cffff, 2, 0, 18 }, Package () { 0x001cffff, 3, 0, 19 },
				Package () { 0x001dffff, 0, 0, 17 }, Package () { 0x001dffff, 1, 0, 18 },
				Package () { 0x001dffff, 2, 0, 19 }, Package () { 0x001dffff, 3, 0, 16 },
				Package () { 0x001effff, 0, 0, 18 }, Package () { 0x001effff, 1, 0, 19 },
				Package () { 0x001effff, 2, 0, 16 }, Package () { 0x001effff, 3, 0, 17 },
				Package () { 0x001fffff, 0, 0, 19 }, Package () { 0x001fffff, 1, 0, 16 },
				Package () { 0x001fffff, 2, 0, 17 }, Package () { 0x001fffff, 3, 0, 18 }
			})
		}

		// Keeps the config space out of everybody's way; Linux trusts MCFG only with this.
		Device (MBRD)
		{
			Name (_HID, EisaId ("PNP0C02"))
			Name (_UID, 0)
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0000000, 0x00100000)
				IO (Decode16, 0x0600, 0x0600, 1, 3)
				IO (Decode16, 0x0608, 0x0608, 1, 1)
			})
		}

		Device (COM1)
		{
			Name (_HID, EisaId ("PNP0501"))
			Name (_UID, 0)
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x03f8, 0x03f8, 1, 8)
				IRQNoFlags () { 4 }
			})
		}

		Device (RTC0)
		{
			Name (_HID, EisaId ("PNP0B00"))
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x0070, 0x0070, 1, 2)
			})
		}

		// virtio-mmio: all slots are described, the register says which of them hold a device. It is
		// a port and no flag in this table, because devices are made after the tables.
		OperationRegion (VREG, SystemIO, 0x0608, 1)
		Field (VREG, ByteAcc, NoLock, Preserve) { VPRS, 8 }
		Method (VSTA, 1)
		{
			If (VPRS & (1 << Arg0)) { Return (0x0f) }
			Return (0)
		}

		Device (VR00)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 0)
			Method (_STA) { Return (VSTA (0)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0100000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 20 }
			})
		}

		Device (VR01)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 1)
			Method (_STA) { Return (VSTA (1)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0101000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 21 }
			})
		}

		Device (VR02)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 2)
			Method (_STA) { Return (VSTA (2)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0102000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 22 }
			})
		}

		Device (VR03)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 3)
			Method (_STA) { Return (VSTA (3)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0103000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 23 }
			})
		}

		Device (VR04)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 4)
			Method (_STA) { Return (VSTA (4)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0104000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 5 }
			})
		}

		Device (VR05)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 5)
			Method (_STA) { Return (VSTA (5)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0105000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 6 }
			})
		}

		Device (VR06)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 6)
			Method (_STA) { Return (VSTA (6)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0106000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 7 }
			})
		}

		Device (VR07)
		{
			Name (_HID, "LNRO0005")
			Name (_UID, 7)
			Method (_STA) { Return (VSTA (7)) }
			Name (_CRS, ResourceTemplate ()
			{
				Memory32Fixed (ReadWrite, 0xe0107000, 0x00001000)
				Interrupt (ResourceConsumer, Level, ActiveHigh, Exclusive) { 9 }
			})
		}
	}
}

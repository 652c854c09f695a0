// SPDX-License-Identifier: BSD-3-Clause
// Idle states of the first two CPUs, which QEMU's machine does not describe: hlt, and the read of an I/O port that
// nothing answers. Both of type C1: below it, a time stamp counter that is not said to be invariant may stop.
DefinitionBlock ("", "SSDT", 1, "KUTRAC", "CSTATES", 1)
{
    External (\_SB.CPUS.C000, ProcessorObj)
    External (\_SB.CPUS.C001, ProcessorObj)

    Name (\KUCS, Package ()
    {
        2,
        Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0) }, 1, 1, 1000 },
        Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x5a0) }, 1, 1000, 100 }
    })

    Scope (\_SB.CPUS.C000)
    {
        Method (_CST) { Return (\KUCS) }
    }

    Scope (\_SB.CPUS.C001)
    {
        Method (_CST) { Return (\KUCS) }
    }
}

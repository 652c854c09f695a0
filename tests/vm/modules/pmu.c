// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// A PMU for a machine without one: perf finds counters of instructions and of cache misses here, and the recorder's own
// rdpmc, an instruction that QEMU does not translate, is given their values by a probe on it. Three instructions pass
// in two ticks of the TSC, and a miss comes every 512 ticks: so the values that a trace must have are known.
//
// To be loaded before the recorder, whose instructions are searched for at the load.

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <asm/tsc.h>

/* rdpmc */
static const u8 opcode[] = { 0x0f, 0x33 };

static u64 counter(u32 index)
{
	u64 ticks = rdtsc();

	return index == PERF_COUNT_HW_INSTRUCTIONS ? ticks + ticks / 2 :
						     ticks / 512;
}

static int emulate(struct kprobe *probe, struct pt_regs *regs)
{
	u64 value = counter(regs->cx);

	regs->ax = lower_32_bits(value);
	regs->dx = upper_32_bits(value);
	instruction_pointer_set(regs, (unsigned long)probe->addr +
				      sizeof(opcode));
	return 1;
}

/* That there is one keeps the probe from becoming a jump, which could not skip the instruction. */
static void never(struct kprobe *probe, struct pt_regs *regs,
		  unsigned long flags)
{
}

static struct kprobe probes[256];
static int count;

static void probe_all(u8 *text, unsigned int size)
{
	for (unsigned int n = 0; n + sizeof(opcode) <= size; n++) {
		struct kprobe *probe = &probes[count];

		if (memcmp(text + n, opcode, sizeof(opcode)))
			continue;
		if (WARN_ON(count == ARRAY_SIZE(probes)))
			return;
		*probe = (struct kprobe){
			.addr = (kprobe_opcode_t *)(text + n),
			.pre_handler = emulate,
			.post_handler = never,
		};
		/* Refused within another instruction. */
		if (!register_kprobe(probe))
			count++;
	}
	pr_info("pmu: %d rdpmc in the recorder\n", count);
}

static int module_changes(struct notifier_block *block, unsigned long state,
			  void *data)
{
	struct module *module = data;
	struct module_memory *text = &module->mem[MOD_TEXT];

	if (strcmp(module->name, "kutrace"))
		return NOTIFY_OK;
	if (state == MODULE_STATE_COMING)
		probe_all(text->base, text->size);
	if (state == MODULE_STATE_GOING)
		while (count)
			unregister_kprobe(&probes[--count]);
	return NOTIFY_OK;
}

static struct notifier_block modules = { .notifier_call = module_changes };

static int event_init(struct perf_event *event)
{
	u64 config = event->attr.config;

	if (event->attr.type != PERF_TYPE_HARDWARE || event->cpu < 0 ||
	    (config != PERF_COUNT_HW_INSTRUCTIONS &&
	     config != PERF_COUNT_HW_CACHE_MISSES))
		return -ENOENT;
	event->hw.event_base_rdpmc = config;
	return 0;
}

static void event_read(struct perf_event *event)
{
	local64_set(&event->count, counter(event->hw.event_base_rdpmc));
}

static void event_start(struct perf_event *event, int flags)
{
}

static void event_stop(struct perf_event *event, int flags)
{
	event_read(event);
}

static int event_add(struct perf_event *event, int flags)
{
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
};

static int __init pmu_init(void)
{
	int ret = perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);

	if (!ret) {
		ret = register_module_notifier(&modules);
		if (ret)
			perf_pmu_unregister(&pmu);
	}
	return ret;
}

static void __exit pmu_exit(void)
{
	unregister_module_notifier(&modules);
	perf_pmu_unregister(&pmu);
}

module_init(pmu_init);
module_exit(pmu_exit);
MODULE_DESCRIPTION("A PMU for KUtrace's tests");
MODULE_LICENSE("Dual BSD/GPL");

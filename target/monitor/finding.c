/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entries of the programs' ring buffers: findings become events of their stations' series, samples go to a file. */
#include "state.h"

static void record_station(struct monitor *monitor, const struct finding *finding, unsigned station, const char *culprit)
{
	struct series *series = finding->cpu < monitor->cpus ? *monitor_series(monitor, finding->cpu, station) : NULL;
	struct event event = {
		.mono_ns = (int64_t)finding->at_ns,
		.value = finding->values[station],
		.maximum = finding->maxima >> station & 1,
		.over_threshold = finding->over >> station & 1,
		.culprit = culprit,
	};

	if (series)
		record_source_event(monitor->run, series, &event);
	if (series && event.over_threshold && run_settings(monitor->run)->stop_at_threshold)
		run_finish(monitor->run);
}

int finding_receive(void *context, void *content, size_t size)
{
	struct monitor *monitor = context;
	const struct finding *finding = content;

	if (size < sizeof(*finding))
		return 0;
	if ((int)(finding->epoch - monitor->epoch) <= 0)
		finding_record(monitor, finding);
	else if (monitor->deferred_count < MAX_DEFERRED)
		monitor->deferred[monitor->deferred_count++] = *finding;
	else
		monitor->run->events_dropped++;
	return --monitor->findings_left ? 0 : -1;
}

/* Without a culprit if no event of it will be recorded: only maxima are, beyond the limit of events. */
void finding_record(struct monitor *monitor, const struct finding *finding)
{
	bool recorded = finding->maxima || monitor->run->events < MAX_EVENTS;
	const char *culprit = recorded ? culprit_of(monitor->run, finding) : NULL;

	for (unsigned station = 0; station < STATIONS; station++)
		if ((finding->maxima | finding->over) >> station & 1)
			record_station(monitor, finding, station, culprit);
}

void samples_begin(struct monitor *monitor, const char *path)
{
	unsigned count = monitor->cpus * STATIONS;

	run_record_samples(monitor->run, path);
	monitor->samples = run_allocate(monitor->run, count * sizeof(*monitor->samples));
	for (unsigned i = 0; i < count; i++)
		if (monitor->series[i])
			monitor->samples[i] = run_add_samples(monitor->run, monitor->series[i]);
}

int sample_receive(void *context, void *content, size_t size)
{
	const struct monitor *monitor = context;
	const struct timer_sample *sample = content;

	if (size < sizeof(*sample) || !monitor->samples || sample->cpu >= monitor->cpus)
		return 0;
	for (unsigned station = 0; station < STATIONS; station++) {
		struct samples *samples = monitor->samples[sample->cpu * STATIONS + station];

		if (samples && sample->values[station] >= 0)
			samples_add(samples, (int64_t)sample->expiry_ns, sample->values[station]);
	}
	return 0;
}

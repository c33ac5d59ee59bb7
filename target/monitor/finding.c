/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was found in a wake-up, as events of its stations' series. */
#include "inside.h"

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
		record_found(monitor->run, series, &event);
	if (series && event.over_threshold && run_settings(monitor->run)->stop_at_threshold)
		run_finish(monitor->run);
}

void finding_take(struct monitor *monitor, const struct finding *finding)
{
	if ((int)(finding->epoch - monitor->epoch) <= 0)
		finding_record(monitor, finding);
	else if (monitor->later_count < LATER)
		monitor->later[monitor->later_count++] = *finding;
	else
		monitor->run->events_dropped++;
}

void finding_record(struct monitor *monitor, const struct finding *finding)
{
	const char *culprit = culprit_of(monitor->run, finding);

	for (unsigned station = 0; station < STATIONS; station++)
		if ((finding->maxima | finding->over) >> station & 1)
			record_station(monitor, finding, station, culprit);
}

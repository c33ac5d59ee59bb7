#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The first program of a deterministic guest: it does the work in /work, hands out the results and powers off.
# The driver of the port for the results is loaded last, so that no host event reaches the guest while it works.
/bin/busybox --install -s /bin
export PATH=/tools/bin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mkdir -p /var/tmp /dev/shm /results
mount -t tmpfs results /results
mount -t tmpfs shm /dev/shm
hostname deterministic-board
ifconfig lo up

sample() {
	head -n 1000000 /dev/null /proc/uptime /proc/[0-9]*/stat /proc/[0-9]*/status /proc/[0-9]*/io 2>/dev/null \
		>"/results/sample-$(printf %06d "$1")"
}

sample_each_second() {
	number=1
	while sleep 1; do
		sample "$number"
		number=$((number + 1))
	done
}

for place in /work/place-*; do
	[ ! -f "$place" ] || cat "/work/setting-${place##*/place-}" >"$(cat "$place")"
done

# The load begins when the watcher has written its first line, or has ended: loading it takes much time.
if [ -f /work/watcher ]; then
	sh /work/watcher </dev/null >/results/output-watcher 2>/results/errors-watcher &
	watcher=$!
	until [ -s /results/output-watcher ] || ! kill -0 "$watcher" 2>/dev/null; do sleep 0.1; done
fi

# Each load is in a session of its own, hence in a scheduler group of its own, as on other boards.
echo 1 >/proc/sys/kernel/sched_autogroup_enabled
for load in /work/load-*; do
	[ -f "$load" ] || continue
	setsid sh "$load" </dev/null >/dev/null 2>"/results/errors-${load##*/}" &
	echo "$!" >>/results/loads
done
[ ! -f /work/phase ] || sleep "$(cat /work/phase)"
if [ -f /results/loads ]; then
	sleep "$(cat /work/warm-up)"
	sample 0
	sample_each_second &
	sampler=$!
fi
for command in /work/command-*; do
	name=${command##*/command-}
	setsid sh "$command" <"/work/input-$name" >"/results/output-$name" 2>"/results/errors-$name"
	echo "$?" >"/results/status-$name"
done
if [ -f /results/loads ]; then
	kill "$sampler"
	sample 999999
fi
if [ -f /work/watcher ]; then
	kill "$watcher" 2>/dev/null
	wait "$watcher"
	echo "$?" >/results/status-watcher
fi
kill -KILL -1
for module in /lib/*.ko; do insmod "$module"; done
# The kernel adds the port some time after its driver, and its device some time before it can be opened.
tries=0
until [ -c /dev/vport0p1 ] && true >/dev/vport0p1; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || break
	sleep 0.1
done
tar -c -C /results . >/dev/vport0p1
poweroff -f

#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest's first program: mounts, a shell on the console for people, then the bench's agent.
# The agent is not process 1: it kills what it adopts.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mkdir -p /var/tmp /dev/shm
mount -t tmpfs shm /dev/shm
hostname virtual-board
ifconfig lo up
# Each command of the bench has a share of its own: what looks after a load of many processes must not starve among them.
echo 1 >/proc/sys/kernel/sched_autogroup_enabled
for module in /lib/*.ko; do insmod "$module"; done
console=/dev/$(cat /sys/class/tty/console/active)
(while :; do setsid sh -c "exec sh -i <$console >$console 2>&1"; done) &
if [ -d /sys/class/net/eth0 ]; then ifconfig eth0 10.0.2.15 up; fi
while :; do
	if [ -d /sys/class/net/eth0 ]; then nc 10.0.2.100 4321 -e /bin/agent stdio; fi
	for port in /dev/vport*p1; do [ -c "$port" ] && /bin/agent device "$port"; done
	sleep 0.1
done

# SPDX-License-Identifier: GPL-2.0-or-later
"""The heavy load of the paper: secure copies over loopback, reading a disk, and 500 niced copiers.

The SSH server is the load's own: keys, port and configuration are made in the scratch directory, and its run directory
lies on a file system that only it sees, as does its user where the board has none.  While it runs it listens on
loopback, where every user of the machine reaches it: so it takes one key only, of one user, from loopback, for copies
and nothing else.  A port may be taken at any moment: then it tries another, below those that Linux gives to clients.
Root's needs a file system of its own, which a chroot whose root is no mount point and a container
without CAP_SYS_ADMIN do not give: the load does not apply there.  The disk read is a file of the scratch directory,
past the page cache where the file system lets it.

The copiers wait at a pipe until all of them are there: those at work would take the CPUs from who starts the rest.
"""

from fastenough.loads.load import Expectation, Load

_LARGE = "dd if=/dev/zero of={scratch}/large bs=1M count=64 status=none"
_SERVER = """
set -e
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
cd {scratch}
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
echo "restrict,from=\\"127.0.0.1\\" $(cat user.pub)" >allowed
cat >common <<END
LogLevel ERROR
ListenAddress 127.0.0.1
HostKey {scratch}/host
AuthorizedKeysFile {scratch}/allowed
AllowUsers $(id -un)@127.0.0.1
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
ChallengeResponseAuthentication no
HostbasedAuthentication no
PermitEmptyPasswords no
PermitRootLogin prohibit-password
DisableForwarding yes
PermitTTY no
PermitTunnel no
PermitUserRC no
PermitUserEnvironment no
SetEnv HOME={scratch}
GatewayPorts no
UsePAM no
StrictModes no
PidFile {scratch}/listening
Subsystem sftp internal-sftp
END
chmod 600 allowed
if [ "$(id -u)" = 0 ]
then
	mount -t tmpfs none /run
	mkdir -p /run/sshd
	if ! grep -q ^sshd: /etc/passwd
	then
		(cat /etc/passwd; echo sshd:x:65534:65534::/run/sshd:/bin/false) >passwd
		mount --bind passwd /etc/passwd
	fi
fi
dd if=/dev/zero of=large bs=1M count=64 status=none
tries=0
until [ -s listening ]; do
	if ! kill -0 "$server" 2>/dev/null
	then
		tries=$((tries + 1))
		[ $tries -le 10 ] || { echo "its SSH server does not listen: $(tail -n 1 log)" >&2; exit 1; }
		port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
		(echo "Port $port"; cat common) >conf
		$(command -v sshd) -D -f conf -E log &
		server=$!
	fi
	sleep 0.1
done
while scp -S "$(command -v ssh)" -q -F none -P $port -i user -o IdentitiesOnly=yes -o BatchMode=yes \\
	-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \\
	large 127.0.0.1:{scratch}/copy
do
	:
done
"""
_COPIERS = """
until [ -e {scratch}/all ]; do sleep 0.1; done | nice -n 19 sh -c '
exec 3<&0
i=0
while [ $i -lt 500 ]; do
	(read -r _; exec dd if=/dev/zero of=/dev/null status=none) <&3 &
	i=$((i + 1))
done
: >{scratch}/all
wait
'
"""
_READER = (
    _LARGE
    + """ || exit
while dd if={scratch}/large of=/dev/null bs=1M iflag=direct 2>/dev/null || cat {scratch}/large >/dev/null
do
	:
done
"""
)

LOAD = Load(
    name="brown-martin",
    source="Brown and Martin, How fast is fast enough?, section 3.8",
    tools=("nice", "scp", "ssh", "ssh-keygen", "sshd", "unshare"),
    commands=(
        ("sh", "-c", '[ "$(id -u)" = 0 ] && exec unshare --mount sh -c "$0"; exec sh -c "$0"', _SERVER),
        ("sh", "-c", _READER),
        ("sh", "-c", _COPIERS),
    ),
    expects=Expectation(cpu_share=0.1, switches_per_s=50.0, bytes_read_per_s=1_000_000.0, processes=505),
    disk_bytes=192 << 20,
    memory_bytes=256 << 20,
    start_s=600.0,
    trial=("sh", "-c", '[ "$(id -u)" != 0 ] || unshare --mount mount -t tmpfs none /run'),
)

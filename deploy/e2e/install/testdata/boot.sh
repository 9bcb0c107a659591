#!/bin/bash
# Boots systemd in the namespaces of its caller: network (the node's), mount, PID, IPC, UTS and cgroup. Its files are the
# machine's, under a layer that ends with the node. $1 is a directory, $2 the name of the node, $3 its cgroup below the mount at $1/cgroup.
set -eu
mount --make-rprivate /
hostname "$2"
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1"/{upper,work,root}
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" overlay "$1/root"
cd "$1/root"
mount -t proc proc proc
# Settings outside of the network namespace are the machine's.
mount --bind proc/sys proc/sys && mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net && mount -o remount,bind,rw proc/sys/net
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty; do touch "dev/$d"; mount --bind "/dev/$d" "dev/$d"; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
: > etc/machine-id
echo "$2" > etc/hostname
# The machine's own daemons are not the node's, and its hardware is not the node's to set up.
rm -rf etc/systemd/system/*.wants var/lib/weft etc/weft etc/default/weft
for unit in systemd-{sysctl,modules-load,remount-fs,udevd,udev-trigger,binfmt,hwdb-update,firstboot,update-utmp,logind,resolved,networkd,timesyncd} \
  dev-hugepages.mount sys-kernel-{debug,tracing,config}.mount sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.{mount,automount} apt-daily{,-upgrade}.timer; do
  case $unit in *.*) ;; *) unit=$unit.service ;; esac
  ln -sf /dev/null "etc/systemd/system/$unit"
done
pivot_root . mnt
umount -l mnt
exec env -i container=e2e PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target

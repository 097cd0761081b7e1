#!/bin/sh
# A virtual machine with a real Debian, provisioned for real: apt, systemd, GRUB, the initramfs and a reboot, none of them a
# stand-in. It makes the image (about two minutes and 3 GB), boots it in QEMU, and ends with 0 when everything held.
#
#   internal/integration/vm/e2e-vm.sh PREFLIGHT [FOLDER]
#
# It needs root (loop devices), debootstrap, qemu-system-x86_64, sfdisk, ssh, and Debian's archive, or a mirror of it in MIRROR.
# What is missing is said, and then it ends with 0: nothing was tried. It takes some ten minutes where the processor must be emulated.
# The image stays in FOLDER as it was made, and is used again: what a run changes lies in a temporary file.
set -eu

preflight=$1
dir=${2:-${TMPDIR:-/tmp}/preflight-e2e-vm}
mirror=${MIRROR:-http://deb.debian.org/debian}
suite=bookworm
port=${PORT:-22522}

skip() {
	echo "skip: $*"
	exit 0
}
fail() {
	echo "FAIL: $*"
	exit 1
}
step() { echo "== $*"; }

[ "$(id -u)" = 0 ] || skip "the image is made through a loop device, which needs root"
for tool in debootstrap qemu-system-x86_64 sfdisk losetup mkfs.ext4 ssh ssh-keygen ssh-keyscan; do
	command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed (apt-get install debootstrap qemu-system-x86 qemu-utils fdisk openssh-client)"
done
[ -e /dev/loop-control ] || skip "this machine has no loop devices"

mkdir -p "$dir/root"
image=$dir/debian.img
loop=
vm=
# shellcheck disable=SC2329 # called by trap
clean() {
	[ -z "$vm" ] || kill "$vm" 2>/dev/null || true
	for m in dev proc sys ''; do umount -l "$dir/root/$m" 2>/dev/null || true; done
	[ -z "$loop" ] || losetup -d "$loop" 2>/dev/null || true
}
trap clean EXIT
trap 'exit 1' INT TERM

build() {
	step "making an image of Debian $suite"
	rm -f "$image.new"
	truncate -s 3G "$image.new"
	echo '2048,,L,*' | sfdisk -q "$image.new"
	loop=$(losetup --show -f -o 1048576 "$image.new")
	mkfs.ext4 -q "$loop"
	mount "$loop" "$dir/root"
	debootstrap --include=linux-image-cloud-amd64,openssh-server,systemd-sysv,grub-pc,pciutils,gpg,ca-certificates "$suite" "$dir/root" "$mirror" >"$dir/debootstrap.log" 2>&1 ||
		skip "debootstrap could not make the image: $(tail -n 1 "$dir/debootstrap.log")"
	[ -e "$dir/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
	mkdir -p "$dir/root/root/.ssh"
	cp "$dir/key.pub" "$dir/root/root/.ssh/authorized_keys"
	printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$dir/root/etc/systemd/network/80-dhcp.network"
	echo "nameserver 10.0.2.3" >"$dir/root/etc/resolv.conf"
	echo e2e-vm >"$dir/root/etc/hostname"
	echo "/dev/vda1 / ext4 defaults 0 1" >"$dir/root/etc/fstab"
	printf 'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT=""\nGRUB_CMDLINE_LINUX="console=ttyS0 root=/dev/vda1"\nGRUB_DISABLE_LINUX_UUID=true\n' >"$dir/root/etc/default/grub"
	for m in dev proc sys; do mount --bind "/$m" "$dir/root/$m"; done
	chroot "$dir/root" systemctl -q enable systemd-networkd ssh
	# The disk is told apart from its partition by hand: within the loop device there is only the partition.
	whole=$(losetup --show -f "$image.new")
	printf '(hd0) %s\n' "$whole" >"$dir/root/boot/device.map"
	# The first boot has a menu by hand; update-grub writes the real one where it knows the disk, on the machine itself.
	kernel=$(cd "$dir/root/boot" && ls vmlinuz-*)
	mkdir -p "$dir/root/boot/grub"
	printf 'linux /boot/%s root=/dev/vda1 console=ttyS0\ninitrd /boot/initrd.img-%s\nboot\n' "$kernel" "${kernel#vmlinuz-}" >"$dir/root/boot/grub/grub.cfg"
	grub_install "$whole" || fail "GRUB cannot be installed: $(tail -n 2 "$dir/debootstrap.log")"
	losetup -d "$whole"
	for m in dev proc sys; do umount "$dir/root/$m"; done
	umount "$dir/root"
	losetup -d "$loop"
	loop=
	mv "$image.new" "$image"
}

# grub_install DISK puts the boot loader on the disk: the core image names the partition by its number.
grub_install() {
	chroot "$dir/root" sh -eu -c '
		mkdir -p /boot/grub/i386-pc
		cp /usr/lib/grub/i386-pc/* /boot/grub/i386-pc/
		grub-mkimage -O i386-pc -o /boot/grub/i386-pc/core.img -p "(hd0,msdos1)/boot/grub" biosdisk part_msdos ext2
		grub-bios-setup -s -d /boot/grub/i386-pc -m /boot/device.map '"$1"'
	' >>"$dir/debootstrap.log" 2>&1
}

# boot starts the machine. KVM is tried first; inside some virtual machines it hangs in the boot loader's real mode, so that
# without a word on the console within half a minute the processor is emulated instead.
boot() {
	for accel in kvm tcg; do
		[ $accel = tcg ] || [ -w /dev/kvm ] || continue
		step "booting it ($accel)"
		qemu-system-x86_64 -machine q35,accel=$accel -cpu qemu64 -smp 2 -m 2048 -display none -serial "file:$dir/console.log" \
			-drive "file=$image,format=raw,if=virtio,snapshot=on" -netdev "user,id=n,hostfwd=tcp:127.0.0.1:$port-:22" \
			-device virtio-net-pci,netdev=n 2>"$dir/qemu.log" &
		vm=$!
		sleep 30
		if [ $accel = tcg ] || [ -s "$dir/console.log" ]; then break; fi
		kill "$vm" 2>/dev/null || true
		wait "$vm" || true
	done
	tries=0
	until ssh-keyscan -T 5 -p "$port" -t ed25519 127.0.0.1 >"$dir/known_hosts" 2>/dev/null && [ -s "$dir/known_hosts" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "it does not come up; its console is in $dir/console.log"
		kill -0 "$vm" 2>/dev/null || fail "qemu ended: $(tail -n 1 "$dir/qemu.log")"
		sleep 2
	done
}

on() { ssh -q -i "$dir/key" -o "UserKnownHostsFile=$dir/known_hosts" -o BatchMode=yes -p "$port" root@127.0.0.1 "$@"; }

pre() {
	XDG_STATE_HOME=$dir/state "$preflight" "$@" -i "$dir/rigs.hcl" --known-hosts "$dir/known_hosts" --ssh-config /dev/null
}

# expect WORDS FILE: a line of the output.
expect() { grep -q -- "$1" "$2" || { cat "$2"; fail "the output lacks: $1"; }; }

[ -e "$image" ] || build
boot
on 'update-grub' >"$dir/grub.log" 2>&1 || fail "update-grub: $(tail -n 1 "$dir/grub.log")"
cat >"$dir/rigs.hcl" <<END
rig "vm" {
  address = "127.0.0.1"
  ssh {
    user           = "root"
    port           = $port
    identity_files = ["$dir/key"]
  }
}
END
books="memlock cpu-governor time-sync iommu pci-realloc nouveau-off slurm-prolog container-shm"

step "planning: nothing is touched"
on 'find /etc /usr/local /var/lib/preflight -type f 2>/dev/null -exec md5sum {} + | sort' >"$dir/before"
# shellcheck disable=SC2086 # one word a playbook
pre provision $books >"$dir/plan" || fail "the plan ended with $?"
expect 'iommu: 1 changes, takes effect at the next boot' "$dir/plan"
on 'find /etc /usr/local /var/lib/preflight -type f 2>/dev/null -exec md5sum {} + | sort' >"$dir/after"
cmp -s "$dir/before" "$dir/after" || fail "the plan touched the machine: $(diff "$dir/before" "$dir/after")"

step "applying, with a reboot"
# shellcheck disable=SC2086
pre provision $books --apply --yes --allow-reboot >"$dir/apply" || { tail -n 20 "$dir/apply"; fail "it ended with $?"; }
expect 'changes made and verified' "$dir/apply"
on 'cat /proc/cmdline' >"$dir/cmdline"
expect 'iommu=pt' "$dir/cmdline"
expect 'pci=realloc' "$dir/cmdline"
on 'systemctl is-active chrony' >"$dir/chrony" || fail "chrony does not run"
on 'ulimit -l' >"$dir/memlock"
expect unlimited "$dir/memlock"
run=$(sed -n 's/.*(run \(.*\))/\1/p' "$dir/apply")

step "a second run finds nothing"
# shellcheck disable=SC2086
pre provision $books --apply --yes >"$dir/again" || fail "it ended with $?"
! grep -q 'changes' "$dir/again" || { cat "$dir/again"; fail "the second run changed something"; }

step "apt's lock is held: its holder is named"
on 'apt-get -q -y remove --purge chrony' >/dev/null 2>&1
# As apt takes it: a lock of fcntl, which a file descriptor of the shell would not hold.
on "perl -MFcntl -e 'open(F, q(>), q(/var/lib/dpkg/lock-frontend)) or die; fcntl(F, F_SETLK, pack(q(s s l! l! i), F_WRLCK, 0, 0, 0, 0)) or die; sleep 40' >/dev/null 2>&1 &"
sleep 1
before=$(date +%s)
pre provision time-sync --apply --yes >"$dir/locked" || { cat "$dir/locked"; fail "it did not wait for apt's lock: $?"; }
[ $(($(date +%s) - before)) -ge 20 ] || fail "it went past a lock that was held"
on 'dpkg -s chrony' >/dev/null || fail "chrony is not installed"

step "taking it back"
pre provision --undo "$run" >"$dir/undo" || { cat "$dir/undo"; fail "undo ended with $?"; }
expect 'taken back' "$dir/undo"
on 'ls /etc/default/grub.d/*preflight* /etc/security/limits.d/*preflight* 2>/dev/null' && fail "undo left files"
on 'grep -c iommu=pt /boot/grub/grub.cfg' && fail "the boot menu still has the parameters"

echo "passed: planned, applied with a reboot, applied again, waited for apt, taken back, on $(on 'uname -sr')"
on poweroff || true
wait "$vm" || true
vm=

// Package stubtools holds stand-ins for the tools of a host, for tests of playbooks: each is a shell script that keeps its state
// below $PREFLIGHT_ROOT/state, prints what the real tool prints, and ends with 99 for a command line that no playbook has
// business with.
//
// What never lives here: tools of simulated rigs that a check reads (internal/rigsim has them).
package stubtools

// System are the tools by which a system is changed: systemd, apt, the boot menu, the driver.
func System() map[string]string {
	return map[string]string{
		"systemctl": `d=$PREFLIGHT_ROOT/state/units; mkdir -p "$d"; echo "systemctl $*" >>"$PREFLIGHT_ROOT/state/calls"
case $1 in
is-enabled) [ -e "$d/$2" ] || [ -e "$PREFLIGHT_ROOT/etc/systemd/system/$2" ] || { echo not-found; exit 1; }; cat "$d/$2.enabled" 2>/dev/null || echo disabled ;;
is-active) cat "$d/$2.active" 2>/dev/null || { echo inactive; exit 3; } ;;
enable) echo enabled >"$d/$2.enabled" ;;
disable) echo disabled >"$d/$2.enabled" ;;
start) echo active >"$d/$2.active"
	sed -n 's/^ExecStart=.usr.bin.nvidia-smi -pl /-pl /p' "$PREFLIGHT_ROOT/etc/systemd/system/$2" 2>/dev/null | while read -r w; do nvidia-smi $w; done ;;
reboot) touch "$PREFLIGHT_ROOT/state/booted"; rm -rf "$PREFLIGHT_ROOT/sys/module/nouveau"
	for f in "$PREFLIGHT_ROOT"/etc/default/grub.d/*.cfg; do [ -f "$f" ] && sed -n 's/.*GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX \(.*\)"/\1/p' "$f"; done >"$PREFLIGHT_ROOT/proc/cmdline" ;;
stop) echo inactive >"$d/$2.active" ;;
try-restart) [ -e "$d/$2" ] || [ -e "$PREFLIGHT_ROOT/etc/systemd/system/$2" ] || { echo "Failed to try-restart $2: Unit $2 not found." >&2; exit 5; } ;;
daemon-reload) ;;
cat) echo "ExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode --verbose"; cat "$PREFLIGHT_ROOT/etc/systemd/system/$2.d/"*.conf 2>/dev/null || true ;;
*) exit 99 ;;
esac`,
		"dpkg-query": `d=$PREFLIGHT_ROOT/state/packages; [ "$1" = -W ] || exit 99
[ -e "$d/$3" ] || exit 1
printf 'have %s installed %s\n' "$3" "$(cat "$d/$3")"`,
		"apt-mark": `case $1 in showhold) cat "$PREFLIGHT_ROOT/state/held" 2>/dev/null ;; hold) shift; for p; do echo "$p" >>"$PREFLIGHT_ROOT/state/held"; done ;; unhold) grep -vx "$2" "$PREFLIGHT_ROOT/state/held" >"$PREFLIGHT_ROOT/state/held.new"; mv "$PREFLIGHT_ROOT/state/held.new" "$PREFLIGHT_ROOT/state/held" ;; *) exit 99 ;; esac`,
		"apt-get": `d=$PREFLIGHT_ROOT/state/packages; mkdir -p "$d"; echo "apt-get $*" >>"$PREFLIGHT_ROOT/state/calls"
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
verb=$1; shift
case $verb in
update) ;;
install) for p; do p=${p%%=*}; [ "$p" = broken ] && { echo "E: Unable to locate package $p" >&2; exit 100; }; echo 1.0 >"$d/$p"; done ;;
remove) for p; do rm -f "$d/$p"; done ;;
*) exit 99 ;;
esac`,
		"sysctl":           `[ "$1 $2" = "-q -p" ] && [ -f "$3" ] || exit 99; cat "$3" >>"$PREFLIGHT_ROOT/state/sysctl"`,
		"update-grub":      `[ $# = 0 ] || exit 99; echo grub >>"$PREFLIGHT_ROOT/state/calls"`,
		"update-initramfs": `[ "$*" = -u ] || exit 99; echo initramfs >>"$PREFLIGHT_ROOT/state/calls"`,
		"chown":            `exit 0`,
		"nvidia-smi": `s=$PREFLIGHT_ROOT/state; echo "nvidia-smi $*" >>"$s/calls"
case "$*" in
"-pl "*) echo "$2" >"$s/limit" ;;
"-L") [ -e "$s/packages/nvidia-driver-570-server-open" ] && [ -e "$s/booted" ] && echo "GPU 0: card" ;;
--query-gpu=power.limit*) cat "$s/limit" ;;
esac`,
	}
}

// Programs are those that single playbooks run.
func Programs() map[string]string {
	return map[string]string{
		"curl": `[ "$1 $2 $3 $4" = "-fsSL --max-time 60 -o" ] || exit 99
case $6 in https://*) echo "-----BEGIN PGP PUBLIC KEY BLOCK-----" >"$5" ;; *) exit 6 ;; esac`,
		"gpg": `case "$*" in
"--batch --show-keys --with-colons "*) printf 'pub:-:\nfpr:::::::::C95B321B61E88C1809C4F759DDCAE044F796ECB0:\nfpr:::::::::EB693B3035CD5710E231E123A4B469963BF863CC:\n' ;;
"--batch --yes --dearmor -o "*) grep -q BEGIN "$6" && echo binary >"$5" ;;
*) exit 99 ;; esac`,
		"nvidia-ctk": `[ "$1 $2" = "cdi generate" ] || exit 99; echo "driver 570.158.01" >"${3#--output=}"`,
		"git":        `[ "$1 $2 $3" = "clone --depth 1" ] || exit 99; mkdir -p "$5/.git"`,
		"make":       `[ "$1" = -C ] || exit 99; mkdir -p "$2/build"; printf '#!/bin/sh\n' >"$2/build/all_reduce_perf"; chmod 755 "$2/build/all_reduce_perf"`,
		"python3":    `[ "$1 $2" = "-m venv" ] || exit 99; mkdir -p "$3/bin"; printf '#!/bin/sh\ntouch "${0%%/pip}/installed"\n' >"$3/bin/pip"; printf '#!/bin/sh\n[ -e "${0%%/python}/installed" ]\n' >"$3/bin/python"; chmod 755 "$3/bin/pip" "$3/bin/python"`,
		"ufw":        `f=$PREFLIGHT_ROOT/state/ufw; case $1 in status) echo "Status: active"; sed 's/^/Anywhere ALLOW /' "$f" 2>/dev/null; exit 0 ;; allow) echo "$3" >>"$f" ;; delete) grep -v "^$4\$" "$f" >"$f.new"; mv "$f.new" "$f" ;; *) exit 99 ;; esac`,
	}
}

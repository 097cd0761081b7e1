# What every script of the engine begins with. POSIX sh; read from standard input, as root.
# shellcheck disable=SC2034 # used by what follows
R=${PREFLIGHT_ROOT-}
N='@NONCE@'
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
LC_ALL=C
DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
umask 022

say() { printf '\n%s %s\n' "$N" "$*"; }

# within SECONDS COMMAND...: runs it with a deadline of its own; 124 when that passed.
within() {
	limit=$1
	shift
	"$@" </dev/null &
	child=$!
	t=0
	while kill -0 "$child" 2>/dev/null; do
		if [ "$t" -ge "$((limit * 20))" ]; then
			kill -9 "$child" 2>/dev/null
			return 124
		fi
		t=$((t + 1))
		sleep 0.05 2>/dev/null || {
			sleep 1
			t=$((t + 19))
		}
	done
	wait "$child"
}

manager() {
	if command -v dpkg-query >/dev/null 2>&1; then
		echo apt
	elif command -v rpm >/dev/null 2>&1; then
		echo dnf
	fi
}

read_file() {
	f=$R$2
	if [ -L "$f" ] || { [ -e "$f" ] && ! [ -f "$f" ]; }; then
		say odd "$1"
	elif [ -f "$f" ]; then
		say file "$1" "$(stat -c '%a %U:%G' "$f" 2>/dev/null)"
		head -c 1048576 "$f" | od -An -v -tx1
	else
		say absent "$1"
	fi
}

read_packages() {
	i=$1
	say packages "$i" "$(manager)"
	shift
	for p in "$@"; do
		case $p in
		apt:*) command -v dpkg-query >/dev/null 2>&1 && dpkg-query -W -f='have ${Package} ${db:Status-Status} ${Version}\n' "${p#apt:}" 2>/dev/null ;;
		dnf:*) command -v dpkg-query >/dev/null 2>&1 || { rpm -q --qf 'have %{NAME} installed %{VERSION}-%{RELEASE}\n' "${p#dnf:}" 2>/dev/null | grep '^have '; } ;;
		esac
	done
	if command -v apt-mark >/dev/null 2>&1; then
		apt-mark showhold 2>/dev/null | sed 's/^/held /'
	elif command -v dnf >/dev/null 2>&1; then
		dnf versionlock list 2>/dev/null | sed -n 's/^\(.*\)-[0-9]*:.*/held \1/p'
	fi
}

read_unit() {
	if ! command -v systemctl >/dev/null 2>&1; then
		say unit "$1" no-systemd no-systemd
		return
	fi
	enabled=$(within 20 systemctl is-enabled "$2" 2>/dev/null | head -n 1)
	active=$(within 20 systemctl is-active "$2" 2>/dev/null | head -n 1)
	say unit "$1" "${enabled:-not-found}" "${active:-unknown}"
}

# read_command I SCRIPT: the guard of a command, which changes nothing.
read_command() {
	out=$(within 60 /bin/sh -c "$2" 2>&1)
	say command "$1" "$?"
	printf '%s\n' "$out" | head -c 2048
}

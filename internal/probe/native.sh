# Takes preflight's own helper in, runs it, and takes it away. POSIX sh. Standard input carries, after "ready", a line
# "BYTES SHA256", the helper itself, and after "stored" the helper's orders; its end is the order to stop.
# shellcheck disable=SC2034,SC2154 # shared with processes.sh, which is put in where its name stands
R=${PREFLIGHT_ROOT-}
N='@NONCE@'
LIMIT=@LIMIT@
BUSES='@BUSES@'
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
umask 077

say() { printf '\n%s %s\n' "$N" "$*"; }

job=''
dir=''

@PROCESSES@

finish() {
	# shellcheck disable=SC2086 # empty ones vanish
	[ -n "$job" ] && end KILL $job
	[ -n "$dir" ] && rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM PIPE

# room says whether a directory has space for the helper, with much to spare: a full one is found before it is sent.
room() {
	[ -c /dev/zero ] || return 0
	head -c 8388608 /dev/zero >"$1/room" 2>/dev/null
	held=$(wc -c <"$1/room" 2>/dev/null)
	rm -f "$1/room"
	[ "${held:-0}" -eq 8388608 ]
}

# place finds the first directory that takes a program and runs it: /tmp is often mounted noexec.
place() {
	for d in "${XDG_RUNTIME_DIR-}" /dev/shm "${TMPDIR-}" /tmp "$HOME/.cache" /var/tmp "$HOME"; do
		if [ -z "$d" ] || ! [ -d "$d" ] || ! [ -w "$d" ]; then continue; fi
		dir=$(mktemp -d "$d/preflight.XXXXXXXX" 2>/dev/null) || {
			dir=''
			continue
		}
		if room "$dir" && printf '#!/bin/sh\nexit 7\n' >"$dir/helper" 2>/dev/null && chmod 700 "$dir/helper"; then
			"$dir/helper" 2>/dev/null
			if [ $? = 7 ]; then return 0; fi
		fi
		rm -rf "$dir"
		dir=''
	done
	return 1
}

if ! place; then
	say failed 'no directory takes a program and runs it: /dev/shm, /tmp, ~/.cache, /var/tmp and the home are full, read-only or mounted noexec'
	exit 0
fi
say ready "$(uname -m)" "$dir"
read -r size sum || exit 0
case $size in '' | *[!0-9]*) exit 0 ;; esac
head -c "$size" >"$dir/helper" || {
	say failed "$dir is full"
	exit 0
}
if [ "$(wc -c <"$dir/helper")" -ne "$size" ]; then
	say failed "the helper did not arrive whole in $dir"
	exit 0
fi
if command -v sha256sum >/dev/null 2>&1; then
	got=$(sha256sum <"$dir/helper")
	if [ "${got%% *}" != "$sum" ]; then
		say failed "the helper that arrived in $dir is not the one that was sent"
		exit 0
	fi
fi
say stored
exec 3<&0
(
	"$dir/helper" --unlink <&3 3<&- 2>"$dir/err"
	echo $? >"$dir/rc.new"
	mv "$dir/rc.new" "$dir/rc"
) &
job=$!
exec 3<&- </dev/null

link_files
ended=''
now
began=$seconds
n=0
while ! [ -s "$dir/rc" ]; do
	n=$((n + 1))
	if [ -n "$files" ] && [ "$n" -le 2000 ]; then
		# shellcheck disable=SC2086 # a list of paths without spaces
		grep -H '' $files >>"$dir/links" 2>/dev/null
	fi
	now
	if [ "$((seconds - began))" -ge "$LIMIT" ]; then
		ended=killed
		break
	fi
	sleep 0.3 2>/dev/null || sleep 1
done
if [ -n "$ended" ]; then
	kill_all "$job"
	say ended "$ended"
else
	say ended exit "$(cat "$dir/rc")"
fi
job=''
say stderr
head -c 8192 "$dir/err" 2>/dev/null
say links
head -c 2097152 "$dir/links" 2>/dev/null
say end

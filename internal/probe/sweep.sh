# Holds power caps on all cards, one after another, each for some seconds, and puts back what was. POSIX sh, as root. It tells
# "limit BUS WATTS LEAST MOST" of each card, "set WATTS" when a cap is in force on all of them, "failed BUS TEXT" when one is
# refused, and "restored" at the end. Whoever started it and does not listen any more is noticed within a second.
LIMITS='@LIMITS@'
CAPS='@CAPS@'
SECONDS_EACH=@SECONDS@
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
old=''
command -v timeout >/dev/null 2>&1 || timeout() {
	shift
	"$@"
}

# put BUS WATTS: sets a limit; what nvidia-smi says when it refuses is told.
put() {
	said=$(timeout 20 nvidia-smi -i "$1" -pl "$2" 2>&1) && return 0
	printf 'failed %s %s\n' "$1" "$(printf '%s' "$said" | head -n 1)" 2>/dev/null
	return 1
}

# back: every card gets the limit that it had.
back() {
	trap '' HUP INT TERM PIPE
	[ -n "$old" ] || return
	bad=''
	for pair in $old; do
		put "${pair%=*}" "${pair#*=}" || bad=1
	done
	old=''
	[ -n "$bad" ] || echo restored 2>/dev/null
}

[ "$(id -u)" = 0 ] || {
	echo 'failed - changing power limits needs root'
	exit 0
}
cards=$(timeout 30 nvidia-smi --query-gpu=pci.bus_id,power.limit,power.min_limit,power.max_limit --format=csv,noheader,nounits 2>&1) || {
	printf 'failed - %s\n' "$(printf '%s' "$cards" | head -n 1)"
	exit 0
}
printf '%s\n' "$cards" | while IFS=', ' read -r bus now least most; do echo "limit $bus $now $least $most"; done
if [ -n "$LIMITS" ]; then
	old=$LIMITS
	[ -n "$CAPS" ] || { # only put back
		back
		exit 0
	}
fi
trap back EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE
for cap in $CAPS; do
	for pair in $old; do
		put "${pair%=*}" "$cap" || exit 1
	done
	echo "set $cap" || exit 1
	n=0
	while [ "$n" -lt "$SECONDS_EACH" ]; do
		sleep 1
		echo held 2>/dev/null || exit 1
		n=$((n + 1))
	done
done

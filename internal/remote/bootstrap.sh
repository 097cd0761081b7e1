unset N ASK body why pw l
N='@NONCE@'
ASK=@ASK@
body=@BODY@
{
	# One compound command: the shell has read all of it before it runs, so that what is sent later stays for `read`.
	# The variables were unset first: one that the login exports would carry its value into every process.
	say() { printf '\n%s %s\n' "$N" "$*"; }
	inner='while IFS= read -r l; do [ "$l" = "'$N'" ] && break; done; exec /bin/sh -s'
	if [ "$(id -u)" = 0 ]; then
		say begin root
		eval "$body" # in this shell: a second one would be two more processes on every host
		exit $?
	fi
	why='sudo is not installed'
	if command -v sudo >/dev/null 2>&1; then
		if why=$(LC_ALL=C sudo -n -- /bin/sh -c : 2>&1 </dev/null); then
			say begin sudo
			printf '%s\n%s\n' "$N" "$body" | sudo -n -- /bin/sh -c "$inner"
			exit $?
		fi
		# Where printf is a program, the password would be seen among its arguments.
		case $(command -v printf) in */*) ASK=0 ;; esac
		if [ "$ASK" = 1 ]; then
			say password
			IFS= read -r pw
			# A password that sudo refuses must not let it take the script for further attempts: try it alone first.
			if why=$(printf '%s\n' "$pw" | LC_ALL=C sudo -S -p '' -- /bin/sh -c : 2>&1); then
				say begin sudo
				# sudo may or may not read the line (cached, NOPASSWD): whatever it leaves is dropped up to the nonce.
				{
					printf '%s\n' "$pw"
					printf '%s\n%s\n' "$N" "$body"
				} | sudo -S -p '' -- /bin/sh -c "$inner"
				exit $?
			fi
			pw=''
		fi
	fi
	# The last line is the reason; what comes before may be sudo's lecture.
	why=$(printf '%s\n' "$why" | grep . | tail -n 1 | cut -c 1-300)
	say begin none "$why"
	eval "$body"
	exit $?
}

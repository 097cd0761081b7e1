N='@NONCE@'
ASK=@ASK@
body=@BODY@
{
	# One compound command: the shell has read all of it before it runs, so that what is sent later stays for `read`.
	say() { printf '\n%s %s\n' "$N" "$*"; }
	inner='while IFS= read -r l; do [ "$l" = "'$N'" ] && break; done; exec /bin/sh -s'
	if [ "$(id -u)" = 0 ]; then
		say begin root
		printf '%s\n' "$body" | /bin/sh -s
		exit $?
	fi
	why='sudo is not installed'
	if command -v sudo >/dev/null 2>&1; then
		if why=$(sudo -n true 2>&1 </dev/null); then
			say begin sudo
			printf '%s\n%s\n' "$N" "$body" | sudo -n -- /bin/sh -c "$inner"
			exit $?
		fi
		if [ "$ASK" = 1 ]; then
			say password
			IFS= read -r pw
			# A password that sudo refuses must not let it take the script for further attempts: try it alone first.
			if why=$(printf '%s\n' "$pw" | sudo -S -p '' -v 2>&1); then
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
	why=$(printf '%s' "$why" | tr '\n\t' '  ' | head -c 200)
	say begin none "$why"
	printf '%s\n' "$body" | /bin/sh -s
	exit $?
}

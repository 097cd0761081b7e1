#!/bin/sh
# Makes the pictures of docs/html.md anew from the demo: screenshots.sh PREFLIGHT. Needs chromium; pngquant makes them small.
set -eu
preflight=$1
cd "$(dirname "$0")"
browser=
for b in chromium chromium-browser google-chrome; do
	if command -v "$b" >/dev/null 2>&1; then browser=$b && break; fi
done
[ -n "$browser" ] || { echo "skip: no chromium is installed"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$preflight" demo -q --format html="$work/fleet.html" 2>/dev/null || [ $? = 3 ]
"$preflight" demo -q --cards 4 --fault narrow-slot,psu-short --format html="$work/report.html" 2>/dev/null || [ $? = 3 ]
# A window of headless chromium is at least 500 pixels wide; a phone is a frame of 390 in it.
printf '<!doctype html><style>:root{color-scheme:light dark}body{margin:0}iframe{border:0;width:390px;height:100vh;display:block}</style><iframe src="report.html"></iframe>' >"$work/phone.html"
shot() { # NAME PAGE WIDTH HEIGHT SCHEME (1 light, 0 dark)
	"$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --user-data-dir="$work/profile" \
		--blink-settings=preferredColorScheme="$5" --window-size="$3,$4" --screenshot="$work/$1.png" "file://$work/$2" >/dev/null 2>&1
	if command -v pngquant >/dev/null 2>&1; then pngquant --force --output "$1.png" 64 "$work/$1.png"; else cp "$work/$1.png" "$1.png"; fi
	echo "docs/images/$1.png"
}
shot report-desktop-light fleet.html 1280 1500 1
shot report-desktop-dark report.html 1280 2150 0
shot report-phone-light phone.html 500 2000 1
shot report-phone-dark phone.html 500 2000 0

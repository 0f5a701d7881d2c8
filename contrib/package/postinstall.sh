#!/bin/sh
# Runs after the package is installed or upgraded. It creates the user of the service, and starts no service by itself. An upgrade (deb:
# the second argument is the old version; rpm: the first is 2) restarts the services that run, so that no old worker stays.
set -e
if ! getent passwd runner >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/runner --shell /usr/sbin/nologin runner
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = configure ] && [ -n "$2" ] || [ "$1" = 2 ]; then
		systemctl try-restart runner.service 'runner@*.service' || true
	fi
fi

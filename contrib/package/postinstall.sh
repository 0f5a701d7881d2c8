#!/bin/sh
# Runs after the package is installed or upgraded. It creates the user of the service, and starts no service by itself.
set -e
if ! getent passwd runner >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/runner --shell /usr/sbin/nologin runner
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

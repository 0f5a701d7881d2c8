#!/bin/sh
# Runs after the package is removed (deb: remove, purge; rpm: 0). It removes the user, unless the user still owns a database.
set -e
case "$1" in
remove | purge | 0)
	if [ ! -e /var/lib/runner ] && getent passwd runner >/dev/null; then
		userdel runner
		if getent group runner >/dev/null; then # userdel removes the group, too, if login.defs says so
			groupdel runner
		fi
	fi
	;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

#!/bin/sh
# Runs before the package is removed (deb: remove, rpm: 0) and before an upgrade. A removal stops the worker; running tasks get its
# grace time.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now runner.service
		systemctl stop 'runner@*.service'
	fi
	;;
esac

package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// notifySink is the program notifysink of the scripts: a service manager's end of a notify socket. Each message becomes a block of lines
// in the file, with the milliseconds since the one before it, until the worker says STOPPING for the second time.
func notifySink() {
	socket, file := os.Args[1], os.Args[2]
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out, err := os.Create(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	last, stops := time.Now(), 0
	buffer := make([]byte, 4096)
	for stops < 2 {
		n, err := listener.Read(buffer)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		message := string(buffer[:n])
		fmt.Fprintf(out, "%s\nafter %d ms\n", message, time.Since(last).Milliseconds())
		last = time.Now()
		if strings.Contains(message, "STOPPING=1") {
			stops++
		}
	}
}

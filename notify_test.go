package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// notifySink is the program "notifysink SOCKET FILE", which the scripts start.
// It receives messages on a socket, as systemd does. It writes each message to
// the file as a block of lines, with the milliseconds since the previous
// message. It exits when it has received STOPPING twice.
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

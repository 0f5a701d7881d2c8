//go:build unix && !linux

package process

func storm(string, string) {} // there is no guardian that could be tested by one

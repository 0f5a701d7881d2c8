package main

import (
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "pgregory.net/rapid"
)

package demo

import (
	"fmt"
	"io"
	"os"
	"testing"
)

// As a child process, TestMain is idle until its input ends or a signal ends it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "idle" {
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

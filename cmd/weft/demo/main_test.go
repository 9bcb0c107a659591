package demo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestMain lets the test binary be the server of a pod, as weft is.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && slices.Equal(os.Args[1:4], []string{"demo", "serve", "--name"}) {
		if err := Serve(context.Background(), os.Args[4], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

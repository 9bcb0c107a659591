package nfttest

import "testing"

// Must returns the result of a call that a test needs. If the call fails, Must panics with its error, so that the
// test program ends and prints the place.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// NoError ends the test if a call that it needs fails.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package cli_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func TestShortRevision(t *testing.T) {
	for _, tt := range []struct {
		revision, last uint64
		want           string
	}{
		{1790000000124, 1790000000124, "00124"},
		{1790000000124, 1790000000200, "00124"},
		{1790000000124, 1790000050123, "00124"},
		{1790000000124, 1790000050124, "000124"},
		{1790000000124, 1790000600000, "0000124"},
		{1790000000124, 1890000000000, "790000000124"},
		{1790000000124, 2890000000000, "1790000000124"},
		{1790000000124, 0, "1790000000124"},
		{0, 1790000000124, "0"},
		{17, 18, "17"},
	} {
		if got := cli.ShortRevision(tt.revision, tt.last); got != tt.want {
			t.Errorf("%d of %d is %s, want %s", tt.revision, tt.last, got, tt.want)
		}
	}
}

// TestShortRevisionIsUnique checks that no later revision up to the last one ends in the same
// digits.
func TestShortRevisionIsUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revision := rapid.Uint64Range(1_700_000_000_000, 1_800_000_000_000).Draw(t, "revision")
		last := revision + rapid.Uint64Range(0, 2_000_000).Draw(t, "after")
		short := cli.ShortRevision(revision, last)
		step := uint64(1)
		for range short {
			step *= 10
		}
		if !strings.HasSuffix(strconv.FormatUint(revision, 10), short) {
			t.Fatalf("%d does not end in %s", revision, short)
		}
		if next := revision + step; next <= last {
			t.Fatalf("%d and %d of %d end in %s", revision, next, last, short)
		}
	})
}

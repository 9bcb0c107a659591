package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		2500 * time.Millisecond: "\r\x1b[Kapply big ... 1 s\r\x1b[Kapply big ... 2 s\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			done := progress(&out, "apply big")
			<-time.After(took)
			done()
			done()
			if out.String() != want {
				t.Errorf("after %v: %q, want %q", took, out.String(), want)
			}
		})
	}
	var out bytes.Buffer
	Progress(&out, "apply big")()
	if out.Len() > 0 {
		t.Errorf("not a terminal: %q", out.String())
	}
}

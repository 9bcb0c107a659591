package policy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// logAllNamespaces makes the kernel log packets of all network namespaces, until the end of
// the test.
func logAllNamespaces(t *testing.T) {
	t.Helper()
	before, err := os.ReadFile(nfttest.LogAllNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nfttest.LogAllNamespaces, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(nfttest.LogAllNamespaces, bytes.TrimSpace(before), 0); err != nil {
			t.Error(err)
		}
	})
}

// kernelLog is the kernel's log from when it was opened.
type kernelLog struct {
	fd   int
	text strings.Builder
}

func openKernelLog(t *testing.T) *kernelLog {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.Seek(fd, 0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	return &kernelLog{fd: fd}
}

// read returns the lines so far.
func (l *kernelLog) read(t *testing.T) string {
	t.Helper()
	for line := make([]byte, 8192); ; {
		n, err := unix.Read(l.fd, line)
		switch {
		case err == nil:
			l.text.Write(line[:n])
		case errors.Is(err, unix.EAGAIN):
			return l.text.String()
		case !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.EINTR): // EPIPE: lines were overwritten
			t.Fatal(err)
		}
	}
}

// TestDropLog sends packets that a policy drops: the kernel's log has some of them, with the
// policy and the addresses.
//
// Policy behaviour: 54.
func TestDropLog(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT, nfttest.KernelLog)
	logAllNamespaces(t)
	log := openKernelLog(t)
	const packets = 50
	newDropLab(t, Config{DropLog: 1}).send(t, packets)
	const prefix = "weft drop shop/closed egress "
	await(t, "a line about a packet", func() bool { return strings.Contains(log.read(t), prefix) })
	text := log.read(t)
	if n := strings.Count(text, prefix); n >= packets {
		t.Errorf("%d lines about %d packets: the log is not limited", n, packets)
	}
	_, line, _ := strings.Cut(text, prefix)
	line, _, _ = strings.Cut(line, "\n")
	for _, want := range []string{"IN=pod ", "SRC=10.244.1.5 ", "DST=10.244.1.1 ", "PROTO=UDP ", "DPT=53 "} {
		if !strings.Contains(line, want) {
			t.Errorf("the kernel's line %q lacks %q", line, want)
		}
	}
}

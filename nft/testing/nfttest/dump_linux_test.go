package nfttest

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDump(t *testing.T) {
	ns := New(t)
	ns.Nft(t, "table ip t {\n set one {\n type ipv4_addr\n }\n set two {\n type ipv4_addr\n }\n}\n")
	got := ns.Dump(t, unix.NFPROTO_IPV4, unix.NFT_MSG_GETSET, nil)
	if len(got) != 2 || !bytes.Contains(got[0], []byte("one\x00")) || !bytes.Contains(got[1], []byte("two\x00")) {
		t.Errorf("Dump = %q, want two sets", got)
	}
}

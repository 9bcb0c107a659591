package get

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestParseDrop reads lines as the kernel writes them.
//
// Policy behaviour: 54.
func TestParseDrop(t *testing.T) {
	names := map[string]string{"10.244.1.5": "shop/db", "fd00:10:244:1::6": "shop/api"}
	for _, tt := range []struct{ line, want string }{
		{
			"[  12.5] weft drop shop/db ingress IN=eth0 OUT=veth2 MAC=02:42 SRC=10.244.2.9 DST=10.244.1.5 LEN=60 TOS=0x00 PREC=0x00 TTL=62 ID=1 DF PROTO=TCP SPT=4711 DPT=5432 WINDOW=64240 RES=0x00 SYN URGP=0 ",
			"[  12.5]  ingress of shop/db: tcp 10.244.2.9:4711 -> shop/db (10.244.1.5:5432) in eth0 out veth2: dropped by shop/db",
		},
		{
			"weft drop shop/api, shop/all egress IN=veth3 OUT= SRC=fd00:0010:0244:0001:0000:0000:0000:0006 DST=fd00::1 LEN=72 TC=0 HOPLIMIT=63 FLOWLBL=0 PROTO=UDP SPT=5 DPT=53 LEN=32",
			"egress of shop/api: udp shop/api ([fd00:10:244:1::6]:5) -> [fd00::1]:53 in veth3: dropped by shop/api, shop/all",
		},
		// A reply of a connection that is not allowed any more.
		{
			"weft drop shop/db ingress IN=veth2 OUT=eth0 SRC=10.244.1.5 DST=10.244.2.9 PROTO=TCP SPT=5432 DPT=4711",
			"ingress of shop/db: tcp shop/db (10.244.1.5:5432) -> 10.244.2.9:4711 in veth2 out eth0: dropped by shop/db",
		},
		{
			"weft drop baseline/default egress IN=a OUT=b SRC=10.244.2.9 DST=10.244.3.9 PROTO=ICMP TYPE=3 CODE=1 [SRC=10.244.1.5 DST=1.1.1.1 PROTO=TCP SPT=1 DPT=2 ]",
			"egress of 10.244.2.9: icmp 10.244.2.9 -> 10.244.3.9 in a out b: dropped by baseline/default",
		},
		{"weft drop x\x1b[31m egress IN=a\x1b OUT=b SRC=10.0.0.1 DST=10.0.0.2 PROTO=47", `egress of 10.0.0.1: 47 10.0.0.1 -> 10.0.0.2 in a\u001b out b: dropped by x\u001b[31m`},
		{"weft drop shop/db ingress IN=a OUT=b SRC=x DST=10.0.0.2", ""},
		{"weft drop shop/db", ""},
		{"weft drop IN=a", ""},
		{"another line IN=a SRC=10.0.0.1 DST=10.0.0.2", ""},
		{"weft drop shop/db ingress IN=a OUT=b SRC=10.0.0.1 DST=10.0.0.2 PROTO=TCP SPT=70000 DPT=", "ingress of 10.0.0.2: tcp 10.0.0.1 -> 10.0.0.2 in a out b: dropped by shop/db"},
	} {
		p, ok := parseDrop(tt.line)
		p.From.Pod, p.To.Pod = names[p.From.Address.String()], names[p.To.Address.String()]
		if ok != (tt.want != "") || ok && p.String() != tt.want {
			t.Errorf("%s\n is %v %s\nwant    %s", tt.line, ok, p.String(), tt.want)
		}
	}
}

func FuzzParseDrop(f *testing.F) {
	f.Add("weft drop shop/db ingress IN=a OUT=b SRC=10.0.0.1 DST=10.0.0.2 PROTO=TCP SPT=1 DPT=2")
	f.Fuzz(func(t *testing.T, line string) {
		p, ok := parseDrop(line)
		if text := p.String(); ok && (!strings.Contains(text, p.From.Address.String()) || strings.ContainsAny(text, "\x1b\n")) {
			t.Errorf("%q is %q", line, text)
		}
	})
}

// TestPodNames reads names again after a while, and keeps them while no frontend answers.
func TestPodNames(t *testing.T) {
	var stderr bytes.Buffer
	var err error
	reads := 0
	n := &podNames{stderr: &stderr, read: func() ([]*PodView, error) {
		reads++
		pod := &PodView{Namespace: "shop", Name: "db", UID: "1", Addresses: []string{"10.0.0.1", "x"}}
		other := &PodView{Namespace: "shop", Name: "old", UID: "0", Addresses: []string{"10.0.0.1"}}
		return []*PodView{pod, other}, err
	}}
	addr := netip.MustParseAddr("10.0.0.1")
	check := func(want string, wantReads int) {
		t.Helper()
		if got := n.of(addr); got != want || reads != wantReads {
			t.Errorf("%q after %d reads, want %q after %d", got, reads, want, wantReads)
		}
	}
	check("shop/db,shop/old", 1)
	check("shop/db,shop/old", 1)
	err = errors.New("no frontend")
	for i := range 2 {
		n.at = time.Time{}
		check("shop/db,shop/old", 2+i)
	}
	if got := strings.Count(stderr.String(), "no frontend"); got != 1 {
		t.Errorf("%d messages: %s", got, &stderr)
	}
}

// TestKernelLog reads what is there, and ends. A machine may not permit it.
func TestKernelLog(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	lines := 0
	if err := readKernelLog(ctx, false, func(string) error { lines++; return nil }); err != nil && !strings.Contains(err.Error(), "journalctl") {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Errorf("it did not end after %d lines", lines)
	}
	if err := cannotReadLog(errors.New("x")); !strings.Contains(err.Error(), "--file -") {
		t.Error(err)
	}
}

// TestRecord returns the time and text of records of the kernel's log.
func TestRecord(t *testing.T) {
	boot := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"6,1,5000000,-;weft drop a\n SUBSYSTEM=x\n": "2026-11-22T00:00:05.000Z weft drop a",
		"6,1,5000000,-,more=1;text":                 "2026-11-22T00:00:05.000Z text",
		"6,1,x,-;text":                              "text",
		"6;text":                                    "text",
		"":                                          "",
	} {
		if got := message(in, boot); got != want {
			t.Errorf("%s", fmt.Sprintf("%q is %q, want %q", in, got, want))
		}
	}
	if since := time.Since(bootTime()); since <= 0 {
		t.Errorf("the machine started %v ago", since)
	}
}

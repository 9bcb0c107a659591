package sysctl

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// full are all settings, none of them as in fakeRoot.
func full() Conntrack {
	return Conntrack{
		Max: 200000, TCPEstablishedTimeout: 24 * time.Hour, TCPCloseWaitTimeout: time.Hour,
		UDPTimeout: 1500 * time.Millisecond, UDPStreamTimeout: 90 * time.Second, TCPBeLiberal: true,
	}
}

// fakeRoot makes a file system with the kernel's values, and files that must not
// change.
func fakeRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, value := range map[string]string{
		maxFile: "65536", hashFile: "16384",
		netfilterDir + "/nf_conntrack_tcp_timeout_established": "432000", netfilterDir + "/nf_conntrack_tcp_timeout_close_wait": "60",
		netfilterDir + "/nf_conntrack_udp_timeout": "30", netfilterDir + "/nf_conntrack_udp_timeout_stream": "120",
		netfilterDir + "/nf_conntrack_tcp_be_liberal": "0",
		"proc/sys/net/ipv4/ip_forward":                "0", "proc/sys/net/ipv4/conf/all/route_localnet": "0",
		"proc/sys/net/bridge/bridge-nf-call-iptables": "0", netfilterDir + "/nf_conntrack_buckets": "16384",
		"proc/self/oom_score_adj": "0", onlineFile: "0-2,5",
	} {
		put(t, root, name, value+"\n")
	}
	return root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
}

// contents returns every file below root.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, root+"/")] = strings.TrimSpace(string(b))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestApply writes what differs, and nothing else on the machine.
//
// Behaviour: 152, 153, 154, 155.
func TestApply(t *testing.T) {
	root := fakeRoot(t)
	want := contents(t, root)
	outcomes, err := full().Apply(root)
	if err != nil || len(outcomes) != 7 {
		t.Fatalf("outcomes %+v, error %v: want seven and none", outcomes, err)
	}
	maps.Copy(want, map[string]string{
		maxFile: "200000", hashFile: "50000",
		netfilterDir + "/nf_conntrack_tcp_timeout_established": "86400", netfilterDir + "/nf_conntrack_tcp_timeout_close_wait": "3600",
		netfilterDir + "/nf_conntrack_udp_timeout": "2", netfilterDir + "/nf_conntrack_udp_timeout_stream": "90",
		netfilterDir + "/nf_conntrack_tcp_be_liberal": "1",
	})
	if got := contents(t, root); !maps.Equal(got, want) {
		t.Errorf("files are %v: want %v", got, want)
	}
	if outcomes, err = full().Apply(root); err != nil || len(outcomes) != 0 {
		t.Errorf("a second time %+v, %v: want nothing to do", outcomes, err)
	}
	if outcomes, err = (Conntrack{}).Apply(t.TempDir()); err != nil || len(outcomes) != 0 {
		t.Errorf("without settings %+v, %v: want nothing to do", outcomes, err)
	}
}

// TestApplyLimit: limit and hash size are only raised.
//
// Behaviour: 152, 153.
func TestApplyLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		c         Conntrack
		max, hash string
	}{
		"lower": {Conntrack{Max: 1000}, "65536", "16384"},
		"raise": {Conntrack{Max: 80000}, "80000", "20000"},
		"leave": {Conntrack{TCPBeLiberal: true}, "65536", "16384"},
	} {
		root := fakeRoot(t)
		if _, err := tt.c.Apply(root); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, root); got[maxFile] != tt.max || got[hashFile] != tt.hash {
			t.Errorf("%s: limit %s, hash size %s: want %s, %s", name, got[maxFile], got[hashFile], tt.max, tt.hash)
		}
	}
}

// TestMaxFlows is kube-proxy's arithmetic.
//
// Behaviour: 152.
func TestMaxFlows(t *testing.T) {
	for _, tt := range []struct{ perCPU, floor, cpus, want int }{
		{32768, 131072, 2, 131072}, {32768, 131072, 8, 262144}, {32768, 131072, 64, 1048576}, {0, 131072, 8, 0}, {-1, 1, 1, 0},
		{32768, 2000000, 64, 2000000}, {10, 0, 3, 30},
	} {
		if got := MaxFlows(tt.perCPU, tt.floor, tt.cpus); got != tt.want {
			t.Errorf("%d for each of %d CPUs, at least %d: %d, want %d", tt.perCPU, tt.cpus, tt.floor, got, tt.want)
		}
	}
	if got := CPUs(fakeRoot(t)); got != 4 {
		t.Errorf("CPUs 0-2,5 are %d: want 4", got)
	}
	root := t.TempDir()
	for _, text := range []string{"", "x", "3-1", "1-"} {
		put(t, root, onlineFile, text)
		if got := CPUs(root); got != runtime.NumCPU() {
			t.Errorf("CPUs %q are %d: want those of the runtime", text, got)
		}
	}
	if got := CPUs("/nowhere"); got != runtime.NumCPU() {
		t.Errorf("unknown CPUs are %d: want those of the runtime", got)
	}
}

// TestOOMScore writes the score where it differs, and makes no file.
//
// Behaviour: 150.
func TestOOMScore(t *testing.T) {
	root := fakeRoot(t)
	for _, score := range []int{-999, -999, 1000} {
		must(t, SetOOMScore(root, score))
		if got := contents(t, root)["proc/self/oom_score_adj"]; got != strconv.Itoa(score) {
			t.Errorf("score %s: want %d", got, score)
		}
	}
	empty := t.TempDir()
	if err := SetOOMScore(empty, 1); !errors.Is(err, os.ErrNotExist) || len(contents(t, empty)) > 0 {
		t.Errorf("without the file: %v, and then there is %v", err, contents(t, empty))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

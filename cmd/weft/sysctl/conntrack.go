package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/cpuset"
)

// maxFlows is kube-proxy's limit for many CPUs.
const maxFlows = 1 << 20

// Paths below the root.
const (
	netfilterDir = "proc/sys/net/netfilter"
	maxFile      = netfilterDir + "/nf_conntrack_max"
	hashFile     = "sys/module/nf_conntrack/parameters/hashsize"
	onlineFile   = "sys/devices/system/cpu/online"
)

var errNotLoaded = errors.New("nf_conntrack is not loaded")

// Conntrack has settings of connection tracking; zero keeps the kernel's.
type Conntrack struct {
	// A greater limit of the kernel stays. The hash table is raised to Max/4.
	Max int
	// rounded up to seconds
	TCPEstablishedTimeout time.Duration
	TCPCloseWaitTimeout   time.Duration
	UDPTimeout            time.Duration
	UDPStreamTimeout      time.Duration
	// TCPBeLiberal accepts packets outside the window as valid.
	TCPBeLiberal bool
}

// MaxFlows returns kube-proxy's limit: perCPU*cpus, at most 1048576 but at least floor. For a
// perCPU of 0 or less it returns 0, which keeps the kernel's.
func MaxFlows(perCPU, floor, cpus int) int {
	if perCPU <= 0 {
		return 0
	}
	return max(floor, min(maxFlows, perCPU*cpus))
}

// CPUs returns the number of the machine's CPUs, also forbidden ones, or runtime.NumCPU if
// unreadable. root is the root directory.
func CPUs(root string) int {
	b, err := os.ReadFile(filepath.Join(root, onlineFile))
	if err != nil {
		return runtime.NumCPU()
	}
	online, err := cpuset.Parse(strings.TrimSpace(string(b)))
	if err != nil || online.IsEmpty() {
		return runtime.NumCPU()
	}
	return online.Size()
}

type outcome struct {
	File       string
	Have, Want int
	Err        error
}

type setting struct {
	file string
	want int
	// raise keeps a greater value.
	raise bool
}

func (c Conntrack) settings() []setting {
	var out []setting
	if c.Max > 0 {
		out = append(out, setting{maxFile, c.Max, true}, setting{hashFile, c.Max / 4, true})
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{
		{"nf_conntrack_tcp_timeout_established", c.TCPEstablishedTimeout},
		{"nf_conntrack_tcp_timeout_close_wait", c.TCPCloseWaitTimeout},
		{"nf_conntrack_udp_timeout", c.UDPTimeout},
		{"nf_conntrack_udp_timeout_stream", c.UDPStreamTimeout},
	} {
		if t.d > 0 {
			out = append(out, setting{file: netfilterDir + "/" + t.name, want: int((t.d + time.Second - 1) / time.Second)})
		}
	}
	if c.TCPBeLiberal {
		out = append(out, setting{file: netfilterDir + "/nf_conntrack_tcp_be_liberal", want: 1})
	}
	return out
}

// Apply writes settings that differ from the kernel's, with an outcome for each.
//
// Possible errors: errNotLoaded.
func (c Conntrack) Apply(root string) ([]outcome, error) {
	settings := c.settings()
	if len(settings) == 0 {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(root, maxFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, errNotLoaded
	}
	var out []outcome
	for _, s := range settings {
		path := filepath.Join(root, s.file)
		have, err := readInt(path)
		if err == nil && (have == s.want || s.raise && have > s.want) {
			continue
		}
		if err == nil {
			err = writeInt(path, s.want)
		}
		out = append(out, outcome{File: "/" + s.file, Have: have, Want: s.want, Err: err})
	}
	return out, nil
}

// Tracked returns the number of tracked connections and its limit, or an error without
// nf_conntrack.
func Tracked(root string) (count, most int, err error) {
	if count, err = readInt(filepath.Join(root, netfilterDir, "nf_conntrack_count")); err == nil {
		most, err = readInt(filepath.Join(root, maxFile))
	}
	return count, most, err
}

func readInt(path string) (int, error) {
	b, err := os.ReadFile(path) //nolint:gosec // one of the files above
	if err != nil {
		return 0, fmt.Errorf("read setting: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("read setting: %w", err)
	}
	return n, nil
}

func writeInt(path string, value int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) //nolint:gosec // one of the files above
	if err != nil {
		return fmt.Errorf("write setting: %w", err)
	}
	_, err = f.WriteString(strconv.Itoa(value))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write setting: %w", err)
	}
	return nil
}

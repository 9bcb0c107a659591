package node

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	cadvisor "github.com/google/cadvisor/lib/model"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
)

// Every node has the same capacity, and the true versions.
type machine struct {
	cadvisortest.Fake

	info    cadvisor.MachineInfo
	version cadvisor.VersionInfo
}

func newMachine(cfg Config) (*machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, fmt.Errorf("read version of kernel: %w", err)
	}
	system, err := systemName("/etc/os-release")
	if err != nil {
		return nil, err
	}
	return &machine{
		info: cadvisor.MachineInfo{
			NumCores: cores, MemoryCapacity: memory,
			MachineID: cfg.Name, SystemUUID: cfg.Name, BootID: string(uuid.NewUUID()),
		},
		version: cadvisor.VersionInfo{KernelVersion: unix.ByteSliceToString(name.Release[:]), ContainerOsVersion: system},
	}, nil
}

// MachineInfo returns a copy, because the kubelet changes it.
func (m *machine) MachineInfo(klog.Logger) (*cadvisor.MachineInfo, error) { return m.info.Clone(), nil }

// VersionInfo returns the versions of the kernel and the distribution.
func (m *machine) VersionInfo() (*cadvisor.VersionInfo, error) {
	version := m.version
	return &version, nil
}

func systemName(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read name of distribution: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"'`), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read name of distribution: %w", err)
	}
	return "Linux", nil
}

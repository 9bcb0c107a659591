package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Machine describes a virtual machine. Only Kernel is required.
type Machine struct {
	Kernel Kernel
	// Files maps paths in the machine to files and directories of the host.
	Files map[string]string
	// in MiB; 0 means 1024
	Memory int
	// 0 means 2
	CPUs int
	// Output receives the script's output as it comes; nil discards it.
	Output io.Writer
}

// busybox is from Debian's package busybox-static.
const busybox = "/bin/busybox"

// ended precedes the exit status, after the script's output.
const ended = "\nvm: the script ended with "

// first is the first process. The script prints to the second serial port, apart from the kernel's
// messages.
const first = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mkdir -p /proc /sys /dev /run /tmp /root /var/lib
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t devpts pts /dev/pts
for d in /dev/shm /run /tmp /var/lib; do mount -t tmpfs tmpfs $d; done
ip link set lo up
stty -F /dev/ttyS1 raw -echo 115200
setsid sh /script >/dev/ttyS1 2>&1 </dev/null
printf '\nvm: the script ended with %s\n' $? >/dev/ttyS1
sync
poweroff -f
`

// Run runs a script of busybox's shell in a new machine. It returns the script's output and exit
// status.
func (m Machine) Run(ctx context.Context, script string) (output string, status int, err error) {
	dir, err := os.MkdirTemp("", "weft-vm-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root.cpio")
	if err := m.writeRoot(root, script); err != nil {
		return "", 0, fmt.Errorf("write the root of the machine: %w", err)
	}
	console := filepath.Join(dir, "console")
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-accel", "tcg,thread=multi", "-cpu", "max", "-m", strconv.Itoa(or(m.Memory, 1024)), "-smp", strconv.Itoa(or(m.CPUs, 2)),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:"+console, "-serial", "stdio",
		"-kernel", m.Kernel.Image, "-initrd", root,
		"-append", "console=ttyS0 panic=-1 rdinit=/init quiet loglevel=4 mitigations=off no_timer_check tsc=unstable clocksource=acpi_pm")
	var printed, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &complaints
	if m.Output != nil {
		cmd.Stdout = io.MultiWriter(&printed, m.Output)
	}
	err = cmd.Run()
	output, after, complete := strings.Cut(printed.String(), ended)
	if !complete {
		log, _ := os.ReadFile(console)
		return output, 0, fmt.Errorf("kernel %s did not run the script to its end: %w\n%s%s",
			m.Kernel.Release, errors.Join(ctx.Err(), err), last(string(log), 40), complaints.String())
	}
	status, err = strconv.Atoi(strings.TrimSpace(after))
	if err != nil {
		return output, 0, fmt.Errorf("read the script's exit status: %w", err)
	}
	return output, status, nil
}

func (m Machine) writeRoot(name, script string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := newArchive(f)
	a.text("/init", first)
	a.text("/script", script)
	a.file(busybox, busybox)
	for _, tool := range []string{"modprobe", "sh"} {
		a.link("/sbin/"+tool, busybox)
	}
	for _, names := range []string{"/etc/protocols", "/etc/services", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/hosts"} {
		a.file(names, names)
	}
	a.file(filepath.Join("/lib/modules", m.Kernel.Release), m.Kernel.Modules)
	for guest, host := range m.Files {
		a.file(guest, host)
	}
	return a.close()
}

// Programs returns the Files of host programs with their libraries.
func Programs(paths ...string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range paths {
		found, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		files[filepath.Join("/usr/sbin", filepath.Base(name))] = found
		list, err := exec.Command("ldd", found).Output()
		if err != nil {
			continue // A static program.
		}
		for line := range strings.Lines(string(list)) {
			for _, word := range strings.Fields(line) {
				if strings.HasPrefix(word, "/") {
					files[word] = word
				}
			}
		}
	}
	return files, nil
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n") + "\n"
}

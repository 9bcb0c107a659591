package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the user and system time of the process and its ended children.
func (p *Process) CPU() (time.Duration, error) {
	// As clock_getcpuclockid(3) computes it.
	const scheduler = 2
	var own unix.Timespec
	if err := unix.ClockGettime(int32(^p.PID()<<3|scheduler), &own); err != nil {
		return 0, fmt.Errorf("read CPU clock of %s: %w", p.Name, errors.Join(err, p.Err()))
	}
	// proc(5) has the children's time in ticks: cutime and cstime, the 14th and 15th field after the
	// name in brackets.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", p.Name, err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 15 {
		return 0, fmt.Errorf("read CPU time of %s: unexpected %q", p.Name, b)
	}
	const tick = 10 * time.Millisecond
	user, err := strconv.Atoi(f[13])
	system, err2 := strconv.Atoi(f[14])
	return time.Duration(own.Nano()) + time.Duration(user+system)*tick, errors.Join(err, err2)
}

// Memory returns the current and the peak resident memory in MiB.
func (p *Process) Memory() (resident, peak float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("read memory of %s: %w", p.Name, errors.Join(err, p.Err()))
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			resident = kib / 1024
		case "VmHWM:":
			peak = kib / 1024
		}
	}
	return resident, peak, nil
}

package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/printable"
)

const (
	// The policies and the direction follow dropPrefix.
	dropPrefix = "weft drop "
	kernelLog  = "/dev/kmsg"
	// maxRecord is more than any record of the kernel's log.
	maxRecord = 16 << 10
)

type packet struct {
	// the time of the drop, or the text before the line
	Time string `json:"time,omitempty"`
	// "ingress" or "egress"
	Direction string `json:"direction"`
	// separated by ", "; a long list ends with a hash
	Policies string `json:"policies"`
	Protocol string `json:"protocol"`
	From     end    `json:"from"`
	To       end    `json:"to"`
	// Out is empty for packets to the node itself
	In  string `json:"in,omitempty"`
	Out string `json:"out,omitempty"`
}

type end struct {
	Address netip.Addr `json:"address"`
	Port    uint16     `json:"port,omitempty"`
	// a pod of this node, or empty
	Pod string `json:"pod,omitempty"`
}

// parseDrop returns false for the kernel's other messages.
func parseDrop(line string) (packet, bool) {
	before, rest, ok := strings.Cut(line, dropPrefix)
	if !ok {
		return packet{}, false
	}
	prefix, rest, ok := strings.Cut(rest, " IN=")
	at := strings.LastIndexByte(prefix, ' ')
	if !ok || at < 0 {
		return packet{}, false
	}
	words := make(map[string]string)
	for word := range strings.FieldsSeq("IN=" + rest) {
		// An ICMP error quotes another packet.
		if strings.HasPrefix(word, "[") {
			break
		}
		name, value, _ := strings.Cut(word, "=")
		words[name] = printable.Escape(value)
	}
	p := packet{
		Time: printable.Escape(strings.TrimSpace(before)), Policies: printable.Escape(prefix[:at]), Direction: printable.Escape(prefix[at+1:]),
		Protocol: strings.ToLower(words["PROTO"]), In: words["IN"], Out: words["OUT"],
		From: endOf(words["SRC"], words["SPT"]), To: endOf(words["DST"], words["DPT"]),
	}
	return p, p.From.Address.IsValid() && p.To.Address.IsValid()
}

func endOf(address, port string) (e end) {
	e.Address, _ = netip.ParseAddr(address)
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		e.Port = uint16(n)
	}
	return e
}

func (p *packet) String() string {
	devices := ""
	if p.In != "" {
		devices += " in " + p.In
	}
	if p.Out != "" {
		devices += " out " + p.Out
	}
	line := fmt.Sprintf("%s of %s: %s %s -> %s%s: dropped by %s", p.Direction, p.subject(), p.Protocol, &p.From, &p.To, devices, p.Policies)
	return strings.TrimSpace(p.Time + "  " + line)
}

// subject names the pod with the dropping policies. For a dropped reply, this pod is at the other
// end.
func (p *packet) subject() string {
	first, second := &p.From, &p.To
	if p.Direction == "ingress" {
		first, second = second, first
	}
	switch {
	case first.Pod != "":
		return first.Pod
	case second.Pod != "":
		return second.Pod
	default:
		return first.Address.String()
	}
}

// String returns "shop/db (10.244.1.5:5432)", or only the address.
func (e *end) String() string {
	addr := e.Address.String()
	if e.Port != 0 {
		addr = netip.AddrPortFrom(e.Address, e.Port).String()
	}
	if e.Pod != "" {
		return e.Pod + " (" + addr + ")"
	}
	return addr
}

// readKernelLog waits for new messages until ctx ends if follow is true.
func readKernelLog(ctx context.Context, follow bool, each func(line string) error) error {
	f, err := os.OpenFile(kernelLog, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return cannotReadLog(err)
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	boot := bootTime()
	for record := make([]byte, maxRecord); ctx.Err() == nil; {
		if !follow {
			// An existing record needs no wait. Printing the one before can take long.
			_ = f.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		}
		n, err := f.Read(record)
		switch {
		case errors.Is(err, syscall.EPIPE):
			// Unread records were overwritten.
			continue
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, syscall.EAGAIN):
			return nil
		case err != nil:
			return cannotReadLog(err)
		}
		if err := each(message(string(record[:n]), boot)); err != nil {
			return err
		}
	}
	return nil
}

func cannotReadLog(err error) error {
	return fmt.Errorf("read the kernel's log: %w: run this as root, or give it the log: journalctl -kf | weft get drops --file -", err)
}

// message returns a record's text after its time. The third field of a record such as
// "6,1234,5678901,-;text" is microseconds since boot.
func message(record string, boot time.Time) string {
	head, text, _ := strings.Cut(record, ";")
	text, _, _ = strings.Cut(text, "\n")
	fields := strings.Split(head, ",")
	if len(fields) < 3 {
		return text
	}
	since, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return text
	}
	return boot.Add(time.Duration(since)*time.Microsecond).Format("2006-01-02T15:04:05.000Z07:00") + " " + text
}

// bootTime is inexact, because the kernel log's clock stops while the machine is suspended.
func bootTime() time.Time {
	now := time.Now()
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &since); err != nil {
		return now
	}
	return now.Add(-time.Duration(since.Nano()))
}

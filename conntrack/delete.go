package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// IPCTNL_MSG_CT_DELETE
const msgDelete = 2

// deleteBatch entries are removed with one write. The receive buffer must hold as many errors of
// about 1 KiB.
const deleteBatch = 64

// answerTimeout is for answers that the kernel drops if short of memory.
const answerTimeout = 10 * time.Second

// ackRequest is answered last, because the kernel answers in order.
func ackRequest() netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: netlink.Noop, Flags: netlink.Request | netlink.Acknowledge}}
}

// remove returns the number of entries that existed.
func (c *Conn) remove(reqs []netlink.Message) (deleted int, err error) {
	if len(reqs) == 0 {
		return 0, nil
	}
	c.deleting.Lock()
	defer c.deleting.Unlock()
	sent, err := c.delete.SendMessages(append(reqs, ackRequest()))
	if err != nil {
		return 0, fmt.Errorf("delete flows: %w", err)
	}
	last := sent[len(sent)-1].Header.Sequence
	// the kernel has answered when the write returns
	if err := c.delete.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, fmt.Errorf("delete flows: %w", err)
	}
	failed := 0
	var errs []error
	for {
		acks, err := c.delete.Receive()
		if err == nil {
			if slices.ContainsFunc(acks, func(m netlink.Message) bool { return m.Header.Sequence == last }) {
				return len(reqs) - failed, errors.Join(errs...)
			}
			// the end of the answers to an earlier call that timed out
			failed, errs = 0, nil
			continue
		}
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrDeadlineExceeded) {
			// without the capability the kernel answers once
			return 0, fmt.Errorf("delete flows: %w", err)
		}
		failed++
		if !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("delete flow: %w", err))
		}
		if failed > len(reqs)+deleteBatch {
			// more errors than requests of two calls: the socket failed
			return 0, errors.Join(errs...)
		}
	}
}

// probe checks the capability by deleting a missing entry.
func (c *Conn) probe() error {
	end := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	req, err := (&Entry{Protocol: unix.IPPROTO_UDP, Source: end, Destination: end}).deletion()
	if err != nil {
		return err
	}
	_, err = c.remove([]netlink.Message{req})
	if errors.Is(err, unix.EINVAL) && !loaded() {
		return nil
	}
	return err
}

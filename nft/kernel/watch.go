package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// watchBuffer is the receive buffer's size; an overflow is reported as Overrun.
const watchBuffer = 4 << 20

const watchQueue = 64

// Reason is the kind of an Event.
type Reason int

// Reasons.
const (
	// Changed means changed contents of a table.
	Changed Reason = iota
	// Deleted means a deleted table.
	Deleted
	// Overrun means lost or undecodable events; any table may have changed.
	Overrun
	// Failed ends the watch for the reason in Err.
	Failed
)

// String returns a lower-case word.
func (r Reason) String() string {
	names := [...]string{Changed: "changed", Deleted: "deleted", Overrun: "overrun", Failed: "failed"}
	if r < 0 || int(r) >= len(names) {
		return fmt.Sprintf("reason(%d)", int(r))
	}
	return names[r]
}

// Event is a change by another process to one of the connection's tables.
type Event struct {
	// Table is zero for Overrun and Failed.
	Table  nft.TableID
	Reason Reason
	// PortID is the process's netlink port; PID and Process identify the process. They are 0 and
	// empty if not reported.
	PortID     uint32
	PID        uint32
	Process    string
	Generation uint32
	Err        error
}

// Watch reports later changes by other processes to the connection's tables, one Event per table
// and transaction. It closes the channel when ctx is done and after Failed. With ownership, only
// Overrun and Failed can occur. Elements that packets add or that expire are not reported. Adopt
// must come before Watch, because an inherited socket has another port.
//
// 64 Events wait for a slow receiver, further ones in the socket's buffer; then the kernel drops
// events (Overrun).
func (c *Conn) Watch(ctx context.Context) (<-chan Event, error) {
	sock, err := listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTABLES)
	if err != nil {
		return nil, fmt.Errorf("watch nftables: %w", err)
	}
	owns := func(id nft.TableID) bool { _, ok := c.tables.lookup(id); return ok }
	w := &watcher{portID: c.portID.Load(), owns: owns}
	events := &stream[Event]{
		sock: sock, out: make(chan Event, watchQueue), decode: w.datagram, overrun: w.overrun,
		failed: func(err error) Event { return Event{Reason: Failed, Err: fmt.Errorf("watch nftables: %w", err)} },
	}
	go events.run(ctx)
	return events.out, nil
}

// listen returns a socket that receives the events of a group, except those caused by portID.
func listen(netNS int, portID, group uint32) (*socket, error) {
	sock, err := dial(netNS)
	if err != nil {
		return nil, err
	}
	setup := func() error {
		if err := sock.reserve(0, watchBuffer); err != nil {
			return err
		}
		filter, err := exceptPort(portID)
		if err != nil {
			return err
		}
		if err := sock.conn.SetBPF(filter); err != nil {
			return fmt.Errorf("filter own changes: %w", err)
		}
		if err := sock.conn.SetsockoptInt(unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(group)); err != nil {
			return fmt.Errorf("join nftables events: %w", err)
		}
		return nil
	}
	if err := setup(); err != nil {
		return nil, errors.Join(err, sock.close())
	}
	return sock, nil
}

// exceptPort drops messages of portID: a large commit would overflow the monitor socket. All
// messages of a datagram belong to one transaction, so the first header is enough.
func exceptPort(portID uint32) ([]bpf.RawInstruction, error) {
	// loads of BPF are big-endian, headers of netlink are not
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], portID)
	const portOffset = 12 // nlmsg_pid
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: portOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(b[:]), SkipTrue: 1},
		bpf.RetConstant{Val: 1<<32 - 1},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, fmt.Errorf("assemble filter: %w", err)
	}
	return filter, nil
}

type watcher struct {
	portID uint32
	owns   func(nft.TableID) bool
	// pending belongs to the current transaction.
	pending []Event
}

func (w *watcher) overrun() Event {
	w.pending = nil
	return Event{Reason: Overrun}
}

// datagram returns the changes of the transactions that end in b.
func (w *watcher) datagram(b []byte) []Event {
	var changes []Event
	for len(b) > 0 {
		h, payload, rest, ok := nextMessage(b)
		m, err := parseReply(payload)
		if !ok || err != nil {
			return append(changes, Event{Reason: Overrun})
		}
		b = rest
		if h.portID == w.portID || h.typ>>8 != unix.NFNL_SUBSYS_NFTABLES {
			continue
		}
		if h.portID == 0 && h.typ == msgType(unix.NFT_MSG_NEWOBJ) {
			// the kernel itself reports a used-up quota (nft_quota.c), outside of transactions
			continue
		}
		if h.typ == msgType(unix.NFT_MSG_NEWGEN) {
			changes = append(changes, w.transactionEnd(m)...)
			continue
		}
		if id, ok := m.table(); ok && w.owns(id) {
			w.record(Event{Table: id, Reason: reasonOf(h.typ), PortID: h.portID})
		}
	}
	return changes
}

func (w *watcher) record(change Event) {
	for i := range w.pending {
		if w.pending[i].Table == change.Table {
			w.pending[i].Reason = max(w.pending[i].Reason, change.Reason)
			return
		}
	}
	w.pending = append(w.pending, change)
}

func (w *watcher) transactionEnd(m reply) []Event {
	changes := w.pending
	w.pending = nil
	if len(changes) == 0 {
		return nil
	}
	var end Event
	_ = attr.Fields{
		attr.Always(unix.NFTA_GEN_ID, &end.Generation),
		attr.Always(unix.NFTA_GEN_PROC_PID, &end.PID),
		attr.Always(unix.NFTA_GEN_PROC_NAME, &end.Process),
	}.Read(m.attrs)
	for i := range changes {
		changes[i].Generation, changes[i].PID, changes[i].Process = end.Generation, end.PID, end.Process
	}
	return changes
}

func reasonOf(typ uint16) Reason {
	if typ == msgType(unix.NFT_MSG_DELTABLE) {
		return Deleted
	}
	return Changed
}

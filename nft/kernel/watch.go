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

// watchBuffer is the receive buffer of the monitor socket. What does not fit
// is reported as an overrun.
const watchBuffer = 4 << 20

// watchQueue is how many changes wait for a receiver that is slow.
const watchQueue = 64

// Reason says what happened to the ruleset.
type Reason int

// The reasons of changes.
const (
	// Changed: another process changed the contents of a table of ours.
	Changed Reason = iota
	// Deleted: another process deleted a table of ours.
	Deleted
	// Overrun: so much happened at once that events were lost; any table of
	// ours may have changed.
	Overrun
	// Failed: the monitor socket failed, and the watch ends. Err says why.
	Failed
)

// String names the reason.
func (r Reason) String() string {
	switch r {
	case Changed:
		return "changed"
	case Deleted:
		return "deleted"
	case Overrun:
		return "overrun"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("reason(%d)", int(r))
	}
}

// Change is a change that another process made to a table of the connection's.
type Change struct {
	// Table is the zero TableID for Overrun and Failed.
	Table  nft.TableID
	Reason Reason
	// PortID is the netlink port of the process; PID and Process are what the
	// kernel says about it.
	PortID  uint32
	PID     uint32
	Process string
	// Generation is that of the ruleset after the change.
	Generation uint32
	// Err is the cause of Failed.
	Err error
}

// Watch reports what other processes do to the connection's tables, one Change
// per table and transaction, until ctx is done or a Change with Reason Failed; then the
// channel is closed. Where tables are owned nobody else can change them, and
// only Overrun and Failed can come. Elements that the packet path adds, and
// that time out, are no changes.
//
// A receiver that is slow makes the kernel drop events, which is an Overrun.
func (c *Conn) Watch(ctx context.Context) (<-chan Change, error) {
	sock, err := c.listen()
	if err != nil {
		return nil, fmt.Errorf("watch nftables: %w", err)
	}
	w := &watcher{sock: sock, portID: c.portID, owns: c.owns, out: make(chan Change, watchQueue)}
	go w.run(ctx)
	return w.out, nil
}

// listen opens a socket that receives the events of other processes' changes.
func (c *Conn) listen() (*socket, error) {
	sock, err := dial(c.netNS)
	if err != nil {
		return nil, err
	}
	setup := func() error {
		if err := sock.reserve(0, watchBuffer); err != nil {
			return err
		}
		filter, err := exceptPort(c.portID)
		if err != nil {
			return err
		}
		if err := sock.nl.SetBPF(filter); err != nil {
			return fmt.Errorf("filter own changes: %w", err)
		}
		if err := sock.nl.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
			return fmt.Errorf("join nftables events: %w", err)
		}
		return nil
	}
	if err := setup(); err != nil {
		return nil, errors.Join(err, sock.close())
	}
	return sock, nil
}

// exceptPort is a socket filter that drops what a port itself did: a large
// commit would overrun the monitor socket. All messages of a datagram belong to one
// transaction, so the first one's header tells.
func exceptPort(portID uint32) ([]bpf.RawInstruction, error) {
	// Loads of BPF are big-endian, headers of netlink are not.
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

// watcher reads the monitor socket.
type watcher struct {
	sock   *socket
	portID uint32
	owns   func(nft.TableID) bool
	out    chan Change
	// pending are the changes of the transaction that is being reported, until
	// its end tells the generation.
	pending []Change
}

// run is the watcher's loop.
func (w *watcher) run(ctx context.Context) {
	defer close(w.out)
	stop := context.AfterFunc(ctx, func() { _ = w.sock.close() })
	defer func() {
		if stop() {
			_ = w.sock.close()
		}
	}()
	for {
		b, err := w.sock.recv(true)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS):
			w.pending = nil
			if !w.emit(ctx, Change{Reason: Overrun}) {
				return
			}
			continue
		case err != nil:
			w.emit(ctx, Change{Reason: Failed, Err: fmt.Errorf("watch nftables: %w", err)})
			return
		}
		for _, change := range w.datagram(b) {
			if !w.emit(ctx, change) {
				return
			}
		}
	}
}

// emit delivers a change; false where ctx ended first.
func (w *watcher) emit(ctx context.Context, change Change) bool {
	select {
	case w.out <- change:
		return true
	case <-ctx.Done():
		return false
	}
}

// datagram decodes events and returns the changes of the transactions that end
// in it. What cannot be decoded counts as an overrun.
func (w *watcher) datagram(b []byte) []Change {
	var changes []Change
	for len(b) > 0 {
		h, payload, rest, ok := nextMessage(b)
		if !ok || len(payload) < genLen {
			return append(changes, Change{Reason: Overrun})
		}
		b = rest
		if h.portID == w.portID || h.typ>>8 != unix.NFNL_SUBSYS_NFTABLES {
			continue
		}
		m := reply{family: nft.Family(payload[0]), attrs: payload[genLen:]}
		if h.typ == msgType(unix.NFT_MSG_NEWGEN) {
			changes = append(changes, w.transactionEnd(m)...)
			continue
		}
		if id, ok := eventTable(m); ok && w.owns(id) {
			w.note(Change{Table: id, Reason: reasonOf(h.typ), PortID: h.portID})
		}
	}
	return changes
}

// note adds a change to the transaction, once per table.
func (w *watcher) note(change Change) {
	for i := range w.pending {
		if w.pending[i].Table == change.Table {
			w.pending[i].Reason = max(w.pending[i].Reason, change.Reason)
			return
		}
	}
	w.pending = append(w.pending, change)
}

// transactionEnd returns the changes of the transaction with what its end says
// about all of them.
func (w *watcher) transactionEnd(m reply) []Change {
	changes := w.pending
	w.pending = nil
	if len(changes) == 0 {
		return nil
	}
	var end Change
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_GEN_ID:
			end.Generation = a.Uint32BE()
		case unix.NFTA_GEN_PROC_PID:
			end.PID = a.Uint32BE()
		case unix.NFTA_GEN_PROC_NAME:
			end.Process = a.Text()
		}
	}
	for i := range changes {
		changes[i].Generation, changes[i].PID, changes[i].Process = end.Generation, end.PID, end.Process
	}
	return changes
}

// reasonOf tells a table's end from other changes.
func reasonOf(typ uint16) Reason {
	if typ == msgType(unix.NFT_MSG_DELTABLE) {
		return Deleted
	}
	return Changed
}

// eventTable returns the table that an event is about. The table's name is the
// first attribute of all kinds of objects: NFTA_TABLE_NAME,
// NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE and so on are all 1.
func eventTable(m reply) (nft.TableID, bool) {
	a := attr.NewReader(m.attrs)
	for a.Next() {
		if a.Type() == unix.NFTA_TABLE_NAME {
			return nft.TableID{Family: m.family, Name: a.Text()}, true
		}
	}
	return nft.TableID{}, false
}
